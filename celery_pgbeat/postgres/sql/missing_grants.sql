-- Read what this user may not do of what a beat has to.
select current_user::text as role, 'table ' || class.relname as what, wanted.privilege
from pg_class as class
cross join (values ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) as wanted (privilege)
where class.relnamespace = '{schema}'::regnamespace
    and (class.relname in ('periodic_task', 'active_job', 'finished_job', 'node')
        or class.relname in ('schema_version', 'blackout', 'job') and wanted.privilege = 'SELECT')
    and not has_table_privilege(class.oid, wanted.privilege)
union all
select current_user::text, 'function ' || proc.oid::regprocedure::text, 'EXECUTE'
from pg_proc as proc
where proc.pronamespace = '{schema}'::regnamespace and proc.prokind = 'f' and proc.prorettype <> 'trigger'::regtype
    and not has_function_privilege(proc.oid, 'EXECUTE')
union all
select current_user::text, 'schema ' || {channel}, 'USAGE'
where not has_schema_privilege({channel}, 'USAGE')
order by what, privilege
