-- Tell the time, by the clock that everything is decided by.
select {schema}.now() as now
