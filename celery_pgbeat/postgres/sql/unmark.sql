-- Take this beat's marks off the rows it has not submitted; without a list, off all due rows.
--
-- Marked rows are due rows, so the index on next_run_at finds them without a scan of the table.
update {schema}.periodic_task
set marked_by = null, marked_at = null, taken_over = false
where marked_by = %(beat)s
    and (%(names)s::text[] is null and enabled and problem is null and next_run_at <= {schema}.now()
        or name = any (%(names)s::text[]))
returning name
