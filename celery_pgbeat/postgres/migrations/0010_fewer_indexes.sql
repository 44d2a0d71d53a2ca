-- Each job is written some four times, and each time into every index: what two indexes knew, one tells as well.
-- May run before the new code.

drop index {schema}.active_job_under_way;
