-- Say in one sentence why a periodic task is, or is not, running now.
select {schema}.explain(%(name)s) as sentence
