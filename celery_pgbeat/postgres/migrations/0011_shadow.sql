-- Beats in shadow, which decide and send nothing. May run before the new code: code that does not know the column
-- leaves it NULL, which means that the beat sends.

alter table {schema}.node add column mode text constraint node_mode_known check (mode in ('sends', 'waits', 'shadow'));

-- Not checked for the rows that are there: that would take long, and none of them has the new reason.
alter table {schema}.finished_job drop constraint finished_job_reason_known;
alter table {schema}.finished_job add constraint finished_job_reason_known
    check (reason in ('overlap', 'blackout', 'too_late', 'paused', 'deleted', 'limit', 'min_gap', 'superseded',
                      'not_allowed', 'not_sent', 'finished', 'after', 'shadow')) not valid;
