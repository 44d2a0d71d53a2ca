-- Tell which of these rows still bear this beat's mark: a submit stepped over them because somebody held them.
select name from {schema}.periodic_task
where name = any (%(names)s::text[]) and marked_by = %(beat)s
