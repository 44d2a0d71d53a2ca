-- Read a page of jobs, the latest first, by whatever an operator looks for.
--
-- The page follows the index on created_at (or on the name and created_at) day by day and ends when it is full. A state
-- that only one of the two tables may have excludes the other by its constraint. `before` names the last job of the
-- page before; a job keeps its place when it becomes final.
select * from {schema}.job
where (%(name)s::text is null or periodic_task = %(name)s::text)
    and (%(pattern)s::text is null or periodic_task like %(pattern)s::text)
    and (%(states)s::text[] is null or state = any (%(states)s::text[]))
    and (%(reason)s::text is null or reason = %(reason)s::text)
    and (%(task)s::text is null or task = %(task)s::text)
    and (%(queue)s::text is null or queue = %(queue)s::text)
    and (%(group_name)s::text is null or group_name = %(group_name)s::text)
    and (%(since)s::timestamptz is null or created_at >= %(since)s::timestamptz)
    and (%(until)s::timestamptz is null or created_at < %(until)s::timestamptz)
    and (%(before_at)s::timestamptz is null
        or created_at <= %(before_at)s::timestamptz
            and (created_at, id) < (%(before_at)s::timestamptz, %(before)s::uuid))
order by created_at desc, id desc
limit %(limit)s
