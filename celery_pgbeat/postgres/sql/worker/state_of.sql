-- Read the state of a job, active or final; nothing if there is no such job.
select state, run, attempt, worker, false as final, task, min_gap is not null as spaced, stop_request,
    tracking = 'send' as untracked
from {schema}.active_job where id = %(job)s
union all
select state, run, attempt, worker, true as final, task, false as spaced, null as stop_request,
    state = 'untracked' or coalesce(restart_data ->> 'tracking' = 'send', false) as untracked
from {schema}.finished_job where id = %(job)s
limit 1
