-- Read the jobs whose end no worker reports, and that block others, or are past busy_until.
--
-- They block these periodic tasks, or what waits for a slot in their group.
select id from {schema}.active_job as job
where tracking = 'result' and state = 'sent'
    and (periodic_task = any (%(names)s::text[]) or busy_until < {schema}.now()
        or slot is not null and exists (
            select from {schema}.active_job as waiting
            where waiting.wait_reason = 'slot' and waiting.group_name = job.group_name))
order by busy_until
limit %(batch)s
