-- Read what code last declared of each periodic task that it has not withdrawn since.
select name, declared
from {schema}.periodic_task
where managed_by = %(manager)s and declared is not null and not declared ? 'withdrawn'
