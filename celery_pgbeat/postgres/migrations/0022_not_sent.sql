-- The reason 'not_sent': a task's own apply_async has sent no message.
-- May run before the new code.

-- Not valid: what was allowed before still is, so no row of the history has to be read.
alter table {schema}.finished_job
    drop constraint finished_job_reason_known,
    add constraint finished_job_reason_known
        check (reason in ('overlap', 'blackout', 'too_late', 'paused', 'deleted', 'limit', 'min_gap',
                          'superseded', 'not_allowed', 'not_sent')) not valid;
