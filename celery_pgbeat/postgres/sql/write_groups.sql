-- Set the limits of groups; a pause stays. In name order, as everywhere where many rows are written.
insert into {schema}.task_group as stored (name, max_active)
select name, max_active
from jsonb_to_recordset(%(groups)s::jsonb) as given (name text, max_active int)
order by name
on conflict (name) do update set max_active = excluded.max_active
where stored.max_active is distinct from excluded.max_active
returning name
