-- Record that a beat of this app is alive; return the other apps whose beats are, and whether each came first.
--
-- The app that was first seen first has the schema. Another one sends nothing while that app has living beats. When
-- these have been silent for their `dead_after`, the other app takes over: so an app may be renamed. Silence counts
-- only while this app's own beats were active. A later app is always first seen later, whatever the clock does.
with others as materialized (
    select name, first_seen_at, last_seen_at, dead_after from {schema}.app where name <> %(app)s
),
forgotten as (
    delete from {schema}.app where name <> %(app)s and last_seen_at < {schema}.now() - interval '1 day'
),
announced as (
    insert into {schema}.app as known (name, first_seen_at, last_seen_at, listening_since, dead_after)
    select %(app)s,
        greatest({schema}.now(), (select max(first_seen_at) + interval '1 microsecond' from others)),
        {schema}.now(), {schema}.now(), make_interval(secs => %(dead_after)s)
    on conflict (name) do update
    set last_seen_at = excluded.last_seen_at,
        listening_since = {listening_since},
        dead_after = excluded.dead_after
    returning first_seen_at, listening_since
)
select others.name, others.last_seen_at,
    (others.first_seen_at, others.name) < (announced.first_seen_at, %(app)s) as is_first
from others cross join announced
where {is_alive}
order by others.first_seen_at, others.name
