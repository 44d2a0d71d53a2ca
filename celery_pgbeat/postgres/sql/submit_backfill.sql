-- Submit one step of a backfill: its jobs and how far it has come, fenced by this very mark.
--
-- The function locks the periodic task and takes its mark off before it looks what else is under way.
select {schema}.submit_backfill(
    %(backfill)s::uuid, %(beat)s, %(marked_at)s::timestamptz, %(revision)s::bigint, %(jobs)s::uuid[],
    %(scheduled_fors)s::timestamptz[], %(reached)s::timestamptz, %(next_at)s::timestamptz, %(total)s::bigint,
    %(skipped)s::bigint, make_interval(secs => %(pickup_deadline)s), %(timezone)s, %(full_acts_as)s) as verdict
