-- What has been raised as an alert and is not over: one row for each episode, whoever of the beats saw it first.
-- May run before the new code: older beats raise nothing.

create table {schema}.alert (
    kind text not null constraint alert_kind_known check (kind in ('overdue', 'dead_beat')),
    name text not null,
    due_at timestamptz not null,
    reason text not null,
    raised_at timestamptz not null default {schema}.now(),
    raised_by text not null,
    constraint alert_once primary key (kind, name)
);
