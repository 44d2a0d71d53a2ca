-- Read the rights that a beat needs and this user lacks.
with wanted (relation, privileges) as (
    values
        ('periodic_task', array['SELECT', 'INSERT', 'UPDATE']),
        ('active_job', array['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('finished_job', array['SELECT', 'INSERT']),
        ('node', array['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('stopped_beat', array['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('declaration', array['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('declaration_in_force', array['SELECT', 'INSERT', 'UPDATE']),
        ('refused_declaration', array['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('app', array['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('alert', array['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('backfill', array['SELECT', 'UPDATE']),
        ('blackout', array['SELECT']),
        ('overdue', array['SELECT']),
        ('schema_version', array['SELECT'])
)
select current_user::text as role, 'table ' || class.relname as what, privilege
from wanted
join pg_class as class on class.relname = wanted.relation and class.relnamespace = '{schema}'::regnamespace
cross join unnest(wanted.privileges) as privilege
where not has_table_privilege(class.oid, privilege)
union all
select current_user::text, 'function ' || proc.oid::regprocedure::text, 'EXECUTE'
from pg_proc as proc
where proc.pronamespace = '{schema}'::regnamespace and proc.prokind = 'f' and proc.prorettype <> 'trigger'::regtype
    and (not proc.prosecdef or proc.proname in ('make_days', 'prune', 'prune_changes', 'is_backfilled'))
    and not has_function_privilege(proc.oid, 'EXECUTE')
union all
select current_user::text, 'schema ' || {channel}, 'USAGE'
where not has_schema_privilege({channel}, 'USAGE')
order by what, privilege
