-- Read the groups with settings and the named blackout windows: what periodic tasks refer to by name.
select 'group' as kind, name, max_active, nullif(ordered, false) as ordered, waits_for,
    nullif(pause_on_failure, false) as pause_on_failure, rate_limit, null::text[] as windows, null as timezone
from {schema}.task_group
where limited or pause_on_failure
union all
select 'window', name, null, null, null, null, null, windows, timezone from {schema}.blackout
order by kind, name
