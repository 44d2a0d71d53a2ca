-- Read the arguments of one periodic task; those of a sensitive one do not leave the database.
select
    case when not sensitive then args::text end as args,
    case when not sensitive then kwargs::text end as kwargs,
    case when not sensitive then options::text end as options
from {schema}.periodic_task
where name = %(name)s
