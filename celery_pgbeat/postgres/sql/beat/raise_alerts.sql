-- Raise alerts for what is overdue, dead beats and refused declarations, once in the cluster; end those that are over.
--
-- The primary key decides which of two beats raises it. Both insert in the order of the names, so they never wait for
-- each other in a circle. What another beat is ending is skipped.
-- If the clock differs from what the beat expects, it has just been set: then no alert is raised.
-- A hundred overdue periodic tasks, and refused declarations, are enough: no more are looked for.
with ended as materialized (
    select kind, name from {schema}.alert
    where case kind
        when 'overdue' then not exists (select from {schema}.overdue as late where late.name = alert.name)
        when 'refused' then not exists (
            select from {schema}.refused_declaration as refused where refused.name = alert.name)
        else not exists (select from {schema}.node where node.id = alert.name and last_seen_at <= alert.due_at)
    end
    order by kind, name
    for update skip locked
),
deleted as (
    delete from {schema}.alert
    using ended
    where alert.kind = ended.kind and alert.name = ended.name
    returning alert.kind, alert.name, alert.due_at, alert.reason
),
found as materialized (
    (select 'overdue' as kind, name, due_at, reason from {schema}.overdue as late
     where due_at < {schema}.now() - make_interval(secs => %(after)s)
        and not exists (select from {schema}.alert where kind = 'overdue' and alert.name = late.name)
     limit (select greatest(%(most)s - count(*), 0) from {schema}.alert where kind = 'overdue'))
    union all
    (select 'refused', name, seen_at, {schema}.refusal_in_words(app, reason)
     from {schema}.refused_declaration as refused
     where not exists (select from {schema}.alert where kind = 'refused' and alert.name = refused.name)
     order by name
     limit (select greatest(%(most)s - count(*), 0) from {schema}.alert where kind = 'refused'))
    union all
    select 'dead_beat', id, last_seen_at,
        'the beat ' || {schema}.node_shown(id) || ' has not been seen since ' || {schema}.shown(last_seen_at)
        || ' and has not signed off'
    from {schema}.node
    where role = 'beat' and not {schema}.is_recent(last_seen_at) and id <> %(beat)s
),
raised as (
    insert into {schema}.alert (kind, name, due_at, reason, raised_by)
    select kind, name, due_at, reason, %(beat)s from found
    where abs(extract(epoch from {schema}.now() - %(now)s::timestamptz)) <= %(step)s
    order by kind, name, due_at
    on conflict do nothing
    returning kind, name, due_at, reason
),
notified as (
    -- A channel's name has at most 63 bytes.
    select pg_notify(left({channel}, 57) || '_alert', '') where exists (select from raised)
)
select true as raised, kind, name, due_at, {schema}.microseconds({schema}.now() - due_at) as late_by_microseconds,
    reason
from raised cross join notified
union all
select false, kind, name, due_at, {schema}.microseconds({schema}.now() - due_at), reason from deleted
