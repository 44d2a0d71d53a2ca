-- Read the rights that a beat needs and this user lacks, and which of our other roles the user has.
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
        ('lost_message', array['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('backfill', array['SELECT', 'UPDATE']),
        ('blackout', array['SELECT']),
        ('overdue', array['SELECT']),
        ('schema_version', array['SELECT'])
), member as (
    -- A beat with the fitting role lacks nothing; one without any of them is a user with grants of its own.
    select array_agg(rolname::text order by rolname) as member_of
    from pg_roles
    where rolname = any(%(others)s::text[]) and pg_has_role(oid, 'member')
)
select current_user::text as role, member_of, 'table ' || class.relname as what, privilege
from wanted
join pg_class as class on class.relname = wanted.relation and class.relnamespace = '{schema}'::regnamespace
cross join unnest(wanted.privileges) as privilege
cross join member
where not has_table_privilege(class.oid, privilege)
union all
select current_user::text, member_of, 'function ' || proc.oid::regprocedure::text, 'EXECUTE'
from pg_proc as proc
cross join member
where proc.pronamespace = '{schema}'::regnamespace and proc.prokind = 'f' and proc.prorettype <> 'trigger'::regtype
    and (not proc.prosecdef or proc.proname in ('make_days', 'prune', 'prune_changes', 'try_lock', 'is_backfilled'))
    and not has_function_privilege(proc.oid, 'EXECUTE')
union all
select current_user::text, member_of, 'schema ' || {channel}, 'USAGE'
from member
where not has_schema_privilege({channel}, 'USAGE')
order by what, privilege
