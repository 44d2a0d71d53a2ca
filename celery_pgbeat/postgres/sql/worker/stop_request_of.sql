-- Read the stop request of a start: cancel, terminate, or none.
select stop_request
from {schema}.active_job
where id = %(job)s and run = %(run)s and attempt = %(attempt)s and token = %(token)s
