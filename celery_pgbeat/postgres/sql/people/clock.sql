-- Read the time by the clock that decides everything.
select {schema}.now() as now
