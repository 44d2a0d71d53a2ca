-- Forget nodes that nobody has heard of for a day; says whether workers announce our tracker.
with forgotten as (
    delete from {schema}.node where last_seen_at < {schema}.now() - interval '1 day'
)
select exists (select from {schema}.node where role = 'worker' and tracking) as tracking
