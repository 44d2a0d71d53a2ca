-- Read what a start is asked to do with its job: cancel, terminate, or nothing.
select stop_request
from {schema}.active_job
where id = %(job)s and run = %(run)s and attempt = %(attempt)s and token = %(token)s
