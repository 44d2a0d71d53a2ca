-- Read the shapes of the calls of the periodic tasks that run: each with their number and one of their names.
--
-- A shape is what Celery compares with the signature of the task: how many arguments, and the names of the keywords.
select task, positions, keywords, bool_or(sensitive) as sensitive, count(*) as rows, min(name) as name
from (
    select name, task, sensitive, jsonb_array_length(args) as positions,
        array(select jsonb_object_keys(kwargs) order by 1) as keywords
    from {schema}.periodic_task
    where enabled and kind = 'task'
) as calls
group by task, positions, keywords
order by task, name
