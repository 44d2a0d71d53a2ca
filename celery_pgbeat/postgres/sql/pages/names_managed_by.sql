-- Read the names of one manager's periodic tasks in name order, a page at a time.
select name from {schema}.periodic_task
where name > %(after)s and managed_by = %(managed_by)s
order by name
limit %(limit)s
