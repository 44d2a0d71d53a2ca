-- Change the named columns of one periodic task, and no others; returns the row, if anything differs.
--
-- The columns that are not named are taken from the row as it is when this statement has locked it, so two changes of
-- different columns at the same time both stay. An equal row is not written: its mark stays, its next run stays.
update {schema}.periodic_task as stored
set (timezone, {definition}) = (
    select given.timezone, {given.definition} from jsonb_populate_record(stored, %(changes)s::jsonb) as given)
where stored.name = %(name)s
    and exists (
        select from jsonb_populate_record(stored, %(changes)s::jsonb) as given
        where (given.timezone, {given.definition}) is distinct from (stored.timezone, {stored.definition}))
returning {task_columns}
