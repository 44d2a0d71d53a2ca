-- Read some of the runs that are next after an instant, the soonest first.
--
-- They are taken from the index on next_run_at, and only they are sorted by name, because a million rows may have the
-- same next run. If more have it than there is room for, any of them are read; `upcoming` reads the first by name.
select name, next_run_at, planned_for
from (
    select name, next_run_at, planned_for from {schema}.upcoming
    where next_run_at > %(after_at)s
    order by next_run_at
    limit %(limit)s
) as soonest
order by next_run_at, name
