-- Release the jobs that beats have held back because the broker took no message for their queue: it takes one now.
--
-- All such jobs, also those of other queues: they are few, and a queue that is still closed holds them back again. None
-- is held for longer than a minute, so the index need not be read further than that.
update {schema}.active_job
set check_at = '-infinity'
where check_at > {schema}.now() and check_at <= {schema}.now() + interval '1 minute'
    and state = 'pending' and marked_by is null and starts_with(error, 'closed queue: ')
returning id
