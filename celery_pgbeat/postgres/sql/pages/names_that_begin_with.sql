-- Read the first names of periodic tasks that begin with a text, for the completion of a shell.
--
-- It begins in the primary key at the text. `starts_with` ends it only in the collation C; in others the page's limit
-- does, or the end of the table where few names begin so.
select name from {schema}.periodic_task
where name >= %(begin)s::text and starts_with(name, %(begin)s::text)
order by name
limit %(limit)s
