-- Take this beat's marks off the rows it has not submitted; without a list, off all due rows.
--
-- Marked rows are due rows, so the index on next_run_at finds them without a scan of the table. A row that another
-- transaction locks is skipped, because a beat that stops does not wait: its mark counts until the lease is over.
update {schema}.periodic_task
set marked_by = null, marked_at = null, taken_over = false
where name = any (array(
    select name from {schema}.periodic_task
    where marked_by = %(beat)s
        and (%(names)s::text[] is null and {is_on} and next_run_at <= {schema}.now()
            or name = any (%(names)s::text[]))
    order by name
    for no key update skip locked))
returning name
