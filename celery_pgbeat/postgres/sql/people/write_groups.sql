-- Set what groups are, except for what they wait for; a pause stays. In name order, as where many rows are written.
--
-- They wait for no group until `order_groups` says so: those that they wait for may not be there yet.
insert into {schema}.task_group as stored (name, max_active, ordered, pause_on_failure, rate_limit)
select name, max_active, coalesce(ordered, false), coalesce(pause_on_failure, false), rate_limit
from jsonb_to_recordset(%(groups)s::jsonb) as given (
    name text, max_active int, ordered boolean, pause_on_failure boolean, rate_limit text)
order by name
on conflict (name) do update
set max_active = excluded.max_active,
    ordered = excluded.ordered,
    waits_for = null,
    pause_on_failure = excluded.pause_on_failure,
    rate_limit = excluded.rate_limit
where stored.waits_for is not null
    or (stored.max_active, stored.ordered, stored.pause_on_failure, stored.rate_limit)
        is distinct from (excluded.max_active, excluded.ordered, excluded.pause_on_failure, excluded.rate_limit)
returning name
