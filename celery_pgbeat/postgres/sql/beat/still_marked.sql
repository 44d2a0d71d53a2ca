-- Read which of these rows still have this beat's mark: a submit skipped them, because they were locked.
select name from {schema}.periodic_task
where name = any (%(names)s::text[]) and marked_by = %(beat)s
