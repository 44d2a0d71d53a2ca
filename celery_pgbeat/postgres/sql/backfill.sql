-- Ask for the occurrences of a range to be submitted; answers the backfill's id.
select {schema}.backfill(%(name)s, %(since)s, %(until)s, %(mode)s, %(max_active)s) as id
