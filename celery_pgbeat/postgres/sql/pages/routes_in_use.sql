-- Read where tracked periodic tasks that run want their messages to go: each with their number and one of their names.
select task, queue, options ->> 'exchange' as exchange, options ->> 'routing_key' as routing_key, count(*) as rows,
    min(name) as name
from {schema}.periodic_task
where enabled and kind = 'task' and tracking <> 'send'
group by 1, 2, 3, 4
order by task, name
