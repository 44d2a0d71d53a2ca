-- Tell which of the jobs that a worker runs are asked to end, each by the token of its start.
select id, token, ask
from {schema}.active_job
where worker = %(worker)s and ask is not null and state = 'running'
