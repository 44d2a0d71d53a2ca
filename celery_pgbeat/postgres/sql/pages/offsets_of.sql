-- Read how far a zone's clock is from UTC at these instants, in seconds.
select
    instant,
    extract(epoch from (instant at time zone %(zone)s) - (instant at time zone 'UTC'))::int as seconds
from unnest(%(instants)s::timestamptz[]) as instant
order by instant
