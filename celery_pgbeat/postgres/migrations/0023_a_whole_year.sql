-- Spans of up to a whole year: to Postgres '1 year' has 360 days, and a year of 365 was refused.
-- May run before the new code.

-- Not valid: what was allowed before still is, so no row has to be read.
alter table {schema}.periodic_task
    drop constraint periodic_task_jitter_in_range,
    add constraint periodic_task_jitter_in_range
        check (jitter >= interval '0' and jitter <= interval '366 days') not valid,
    drop constraint periodic_task_min_gap_in_range,
    add constraint periodic_task_min_gap_in_range
        check (min_gap > interval '0' and min_gap <= interval '366 days') not valid,
    drop constraint periodic_task_spans_in_range,
    add constraint periodic_task_spans_in_range check (
        (catchup_window <= interval '100 years') is not false
        and (max_run_time <= interval '366 days') is not false
        and (pickup_deadline <= interval '366 days') is not false) not valid;
