-- Read which of the jobs that a worker runs are asked to end, each by the token of its start.
select id, token, stop_request
from {schema}.active_job
where worker = %(worker)s and stop_request is not null and state = 'running'
