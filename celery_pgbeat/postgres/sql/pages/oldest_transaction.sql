-- Read the oldest transaction that keeps dead rows from being removed, as far as this user may see it.
select pid, coalesce(application_name, '') as application, xact_start as since
from pg_stat_activity
where datname = current_database() and backend_xmin is not null and pid <> pg_backend_pid()
order by xact_start nulls last
limit 1
