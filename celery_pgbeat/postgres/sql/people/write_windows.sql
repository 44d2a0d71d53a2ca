-- Set named blackout windows; rows that use a changed one are planned again. In name order, as everywhere where many
-- rows are written.
insert into {schema}.blackout as stored (name, windows, timezone)
select name, windows, timezone
from jsonb_to_recordset(%(windows)s::jsonb) as given (name text, windows text[], timezone text)
order by name
on conflict (name) do update set windows = excluded.windows, timezone = excluded.timezone
where (stored.windows, stored.timezone) is distinct from (excluded.windows, excluded.timezone)
returning name
