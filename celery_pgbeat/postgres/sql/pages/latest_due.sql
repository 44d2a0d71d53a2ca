-- Read what has been overdue longest, without the reasons.
--
-- Runs that no beat has decided are read in order, by the index on next_run_at. Of all that is overdue, 1,000 are read
-- in no order: to sort a million takes too long.
select name, due_at
from (
    (select name, next_run_at as due_at from {schema}.periodic_task
     where {is_on} and next_run_at < {schema}.now() and next_run_at < {schema}.now() - {schema}.patience(mark_lease)
     order by next_run_at
     limit %(limit)s)
    union
    (select name, due_at from {schema}.overdue limit 1000)
) as found
order by due_at, name
limit %(limit)s
