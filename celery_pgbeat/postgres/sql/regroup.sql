-- Bring rows in line with their groups: see the function.
select {schema}.regroup() as name
