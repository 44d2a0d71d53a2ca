-- Read the last name that `look_through` has looked at; no row if it has reached the end of the table.
select name from {schema}.periodic_task
where name > %(after)s
    and (%(group_name)s::text is null or group_name = %(group_name)s::text)
order by name
offset %(most)s - 1
limit 1
