-- Durations as they leave Postgres: a whole number, which no setting of a server, a database or a role changes.
--
-- The text of an interval changes with IntervalStyle, and that of a double precision with extra_float_digits. A driver
-- that does not check these settings reads some of the texts wrongly, without an error.

-- How many microseconds a duration has, as Postgres compares durations: a day has 24 hours, a month 30 days, a year 12
-- months. All steps are whole numbers far below 2^53, so none is rounded. Their types are written out, so that no
-- operator of another schema fits better. In PL/pgSQL and strict, because Postgres would write a function in SQL out in
-- each statement that calls it, which takes longer than a mark of some rows; and most durations are NULL.
create or replace function {schema}.microseconds(duration interval) returns bigint
language plpgsql immutable strict parallel safe
as $$
begin
    return (
        (
            (pg_catalog.date_part(text 'year', duration) * float8 '360'
                + pg_catalog.date_part(text 'month', duration) * float8 '30'
                + pg_catalog.date_part(text 'day', duration)) * float8 '86400'
            + pg_catalog.date_part(text 'hour', duration) * float8 '3600'
            + pg_catalog.date_part(text 'minute', duration) * float8 '60'
        ) * float8 '1000000' + pg_catalog.date_part(text 'microsecond', duration)
    )::bigint;
end
$$;
