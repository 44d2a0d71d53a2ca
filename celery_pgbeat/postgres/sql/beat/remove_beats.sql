-- Take beats that have ended off the list of nodes, and remember when they ended.
--
-- When the last beat has ended, no declaration in code has a beat any more, and what was refused is forgotten. While a
-- beat is left, a declaration is given up only when it was silent for a while: a node that is merely restarted changes
-- nothing. A declaration that was renewed after this began belongs to a beat that starts, and stays.
with ended as (
    delete from {schema}.node where id = any (%(nodes)s::text[])
    returning id, role, hostname
),
remembered as (
    insert into {schema}.stopped_beat (id, hostname)
    select id, hostname from ended where role = 'beat'
    on conflict (id) do update set stopped_at = excluded.stopped_at
),
forgotten as (
    delete from {schema}.refused_declaration
    where not exists (select from {schema}.node where role = 'beat' and id <> all (%(nodes)s::text[]))
)
delete from {schema}.declaration
where last_seen_at <= {schema}.now()
    and not exists (select from {schema}.node where role = 'beat' and id <> all (%(nodes)s::text[]))
