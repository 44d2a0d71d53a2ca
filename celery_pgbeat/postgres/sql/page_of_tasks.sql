-- Read a page of periodic tasks in name order, by whatever an operator looks for.
--
-- The page follows the primary key and ends when it is full. What no index serves is tested on the way: a filter that
-- hardly any row passes reads the table once.
select {task_columns} from {schema}.periodic_task
where name > %(after)s
    and (%(pattern)s::text is null or name like %(pattern)s::text)
    and (%(task)s::text is null or task = %(task)s::text)
    and (%(queue)s::text is null or queue = %(queue)s::text)
    and (%(managed_by)s::text is null or managed_by = %(managed_by)s::text)
    and (%(group_name)s::text is null or group_name = %(group_name)s::text)
    and (%(enabled)s::boolean is null or enabled = %(enabled)s::boolean)
    and (%(with_problem)s::boolean is null or %(with_problem)s::boolean = (
        problem is not null or exists (
            select from {schema}.active_job as job where job.periodic_task = name and job.state = 'error')))
order by name
limit %(limit)s
