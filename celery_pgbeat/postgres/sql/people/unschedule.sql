-- Remove a periodic task; returns whether it existed.
select {schema}.unschedule(%(name)s) as removed
