-- The beats that have stopped cleanly. May run before the new code: nothing else uses the table.
--
-- A beat that stops takes its row out of `node`, so it does not count as dead. This table remembers when it stopped.
create table {schema}.stopped_beat (
    id text primary key,
    hostname text not null,
    stopped_at timestamptz not null default {schema}.now(),
    constraint stopped_beat_size check (octet_length(id) <= 1000 and octet_length(hostname) <= 1000),
    constraint stopped_beat_instant_in_range check (
        stopped_at >= '0001-01-02 00:00+00' and stopped_at <= '9999-12-30 00:00+00')
);
