-- Give the free places of groups to up to %(batch)s jobs that wait for one; answers how many got one.
select {schema}.admit(%(batch)s) as admitted
