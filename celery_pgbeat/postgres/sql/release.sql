-- Release the buffered jobs whose turn it is; without a list, of all periodic tasks.
--
-- The end of a job releases the next one by itself. This is for the first in line, and for a job that was buffered at
-- the very moment at which the one before it ended.
select {schema}.release(%(names)s::text[]) as released
