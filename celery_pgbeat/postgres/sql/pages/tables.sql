-- Read what Postgres knows of the size of our tables and of the dead rows in them.
select class.relname::text as name, n_live_tup as live, n_dead_tup as dead,
    greatest(last_vacuum, last_autovacuum) as vacuumed_at, pg_total_relation_size(relid) as bytes,
    current_setting('autovacuum')::boolean as autovacuum,
    not coalesce(
        array_to_string(class.reloptions, ',') ~ 'autovacuum_enabled=(false|off|0)', false) as vacuumed_by_itself
from pg_stat_user_tables
join pg_class as class on class.oid = relid
where schemaname = %(schema)s
order by class.relname
