-- Who changed what: an audit trail of definitions and of people's decisions. May run before the new code: triggers and
-- functions write it, whatever version called them.

create table {schema}.change (
    id bigint generated always as identity constraint change_pkey primary key,
    at timestamptz not null,
    who text not null,
    role text not null,
    kind text not null constraint change_kind_known check (kind in ('periodic_task', 'group', 'window')),
    name text not null,
    action text not null constraint change_action_known check (
        action in ('created', 'changed', 'renamed', 'removed', 'paused', 'resumed', 'triggered', 'backfilled',
                   'retried', 'cancelled', 'failed', 'picked_up', 'released', 'finished')),
    revision int,
    columns text[],
    before jsonb,
    after jsonb,
    -- Apart, so that a role may read all else.
    arguments_before jsonb,
    arguments_after jsonb,
    job uuid,
    backfill uuid,
    reason text,
    constraint change_size check (
        octet_length(who) <= 800 and octet_length(name) <= 800 and octet_length(reason) <= 8000)
);

create index change_of_name on {schema}.change (name, id);
-- A name that a row had before, and the renaming by which it lost it.
create index change_renamed on {schema}.change ((before ->> 'name'), id) where action = 'renamed';
