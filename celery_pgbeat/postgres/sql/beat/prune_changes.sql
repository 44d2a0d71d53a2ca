-- Delete the oldest entries of the table of changes that are older than the duration; returns how many.
select {schema}.prune_changes(make_interval(secs => %(keep)s), %(most)s)
