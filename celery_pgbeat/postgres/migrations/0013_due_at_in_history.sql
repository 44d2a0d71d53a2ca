-- When a job was due, and its group, in the history. May run before the new code: what older beats and workers write
-- goes through the functions of the schema.

alter table {schema}.finished_job
    add column due_at timestamptz,
    add column group_name text,
    add constraint finished_job_group_size check (octet_length(group_name) <= 800),
    add constraint finished_job_due_at_in_range check (
        due_at >= '0001-01-02 00:00+00' and due_at <= '9999-12-30 00:00+00');
