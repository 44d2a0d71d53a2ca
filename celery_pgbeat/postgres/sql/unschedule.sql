-- Remove a periodic task; answers whether there was one.
select {schema}.unschedule(%(name)s) as removed
