-- Read the groups with a limit and the named blackout windows: what periodic tasks refer to by name.
select 'group' as kind, name, max_active, null::text[] as windows, null as timezone from {schema}.task_group
where max_active is not null
union all
select 'window', name, null, windows, timezone from {schema}.blackout
order by kind, name
