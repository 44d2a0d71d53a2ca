-- Change the schedule of a periodic task because its own job asks for it.
update {schema}.periodic_task
set schedule = %(schedule)s, timezone = %(timezone)s, anchor = %(anchor)s::timestamptz
where name = %(name)s
returning name
