-- Read the schemas in which other roles than their owner may put a function in the place of one of Postgres' own.
--
-- A schema of this user's search_path, if every role may create objects in it, and ours, if any role but its owner may.
-- That pg_catalog comes first helps only against a function with the very same arguments: Postgres takes one that fits
-- better from any schema of the path. In a schema without a list of grants only its owner may create objects.
with granted as (
    select namespace.nspname, namespace.oid = {channel}::regnamespace as ours,
        case when acl.grantee = 0 then 'public' else acl.grantee::regrole::text end as grantee
    from pg_namespace as namespace
    cross join aclexplode(namespace.nspacl) as acl
    where acl.privilege_type = 'CREATE' and acl.grantee <> namespace.nspowner
        and (namespace.oid = {channel}::regnamespace
            or acl.grantee = 0 and namespace.nspname = any (current_schemas(false)))
)
select quote_ident(nspname) as schema, ours, array_agg(grantee order by grantee) as grantees,
    quote_ident(current_user) as role
from granted
group by nspname, ours
order by ours, nspname
