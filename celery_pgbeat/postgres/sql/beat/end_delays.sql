-- End the delays of the jobs for whose queue the broker took no message: it takes one now.
--
-- All such jobs, also those of other queues: they are few, and a queue that is still closed delays them again. None
-- is delayed for longer than a minute, so the index need not be read further than that.
update {schema}.active_job
set check_at = '-infinity'
where check_at > {schema}.now() and check_at <= {schema}.now() + interval '1 minute'
    and state = 'pending' and marked_by is null and starts_with(error, 'closed queue: ')
returning id
