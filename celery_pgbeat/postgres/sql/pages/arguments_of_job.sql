-- Read the arguments of a job: of one that is not final, and of a manual one that has not succeeded.
--
-- Those of a sensitive one do not leave the database. The history does not record whether a job was sensitive, its
-- periodic task does: of a task that was removed no arguments are shown.
select hidden,
    case when not hidden then coalesce(call -> 'args', '[]')::text end as args,
    case when not hidden then coalesce(call -> 'kwargs', jsonb_build_object())::text end as kwargs
from (
    select kept.call, kept.was_sensitive or coalesce(task.sensitive, kept.was_final) as hidden
    from (
        select periodic_task, message as call, coalesce((message ->> 'sensitive')::boolean, false) as was_sensitive,
            false as was_final
        from {schema}.active_job
        where id = %(id)s::uuid
        union all
        (select periodic_task, arguments, false, true
         from {schema}.finished_job
         where id = %(id)s::uuid and arguments is not null
         limit 1)
    ) as kept
    left join {schema}.periodic_task as task on task.name = kept.periodic_task
) as known
