-- Read which days of the history there are, which it should have by now, and whether the default partition has a row.
select
    ({schema}.now() at time zone 'UTC')::date as today,
    array(
        select to_date(right(child.relname, 8), 'YYYYMMDD')
        from pg_inherits
        join pg_class as child on child.oid = inhrelid
        where inhparent = '{schema}.finished_job'::regclass and child.relname ~ '^finished_job_[0-9]{8}$'
        order by 1
    ) as days,
    exists (select from {schema}.finished_job_default) as fallen
