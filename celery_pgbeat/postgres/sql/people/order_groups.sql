-- Set what groups wait for, once all groups and periodic tasks of a file are written.
update {schema}.task_group as known
set waits_for = given.waits_for
from jsonb_to_recordset(%(groups)s::jsonb) as given (name text, waits_for text[])
where known.name = given.name and given.waits_for is not null
returning known.name
