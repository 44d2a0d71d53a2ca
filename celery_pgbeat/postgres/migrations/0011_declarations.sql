-- Which of the declarations in code is in force, while beats of several versions work side by side.
-- May run before the new code; nodes of older packages work on beside it, and declare when they start, as they did.

-- Few rows, written with each sign of life.
create table {schema}.declaration (
    app text not null,
    hash text not null,
    first_seen_at timestamptz not null,
    last_seen_at timestamptz not null,
    listening_since timestamptz not null,
    dead_after interval not null,
    primary key (app, hash)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- A row an app, changed only when another declaration comes into force: whoever writes what code declares holds it.
create table {schema}.declaration_in_force (
    app text primary key,
    hash text not null,
    revision bigint not null
);
