-- Drop the days of the history that are older than the retention.
select {schema}.prune(make_interval(secs => %(retention)s))
