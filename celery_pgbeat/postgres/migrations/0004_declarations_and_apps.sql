-- What code declares and its beats refuse, and which apps have beats here. May run before the new code: code that does
-- not know the tables neither reads nor writes them.

-- Few rows: only what is wrong. Written when a declaration comes into force, cleared when it is mended.
create table {schema}.refused_declaration (
    app text not null,
    name text not null,
    reason text not null,
    hash text not null,
    seen_at timestamptz not null default {schema}.now(),
    constraint refused_declaration_once primary key (app, name),
    constraint refused_declaration_size check (
        octet_length(app) <= 1000 and octet_length(name) <= 800 and octet_length(reason) <= 8000
        and octet_length(hash) <= 1000),
    constraint refused_declaration_instants_in_range check (
        seen_at between '0001-01-02 00:00+00' and '9999-12-30 00:00+00')
);

create index refused_declaration_of_name on {schema}.refused_declaration (name);

-- A row an app, by its name, written with each heartbeat of its beats.
create table {schema}.app (
    name text primary key
        constraint app_name_length check (octet_length(name) between 1 and 1000),
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    listening_since timestamptz not null,
    dead_after interval not null,
    constraint app_instants_in_range check (
        least(first_seen_at, last_seen_at, listening_since) >= '0001-01-02 00:00+00'
        and greatest(first_seen_at, last_seen_at, listening_since) <= '9999-12-30 00:00+00'),
    constraint app_dead_after_in_range check (
        timestamp '2000-01-01' + dead_after between '2000-01-01' and '2001-01-01')
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

alter table {schema}.alert drop constraint alert_kind_known;
alter table {schema}.alert
    add constraint alert_kind_known check (kind in ('overdue', 'dead_beat', 'refused'));
