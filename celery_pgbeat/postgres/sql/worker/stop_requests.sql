-- Read the stop requests of the jobs that a worker runs, each by the token of its start.
select id, token, stop_request
from {schema}.active_job
where worker = %(worker)s and stop_request is not null and state = 'running'
