-- Submit the occurrences of a range on request; returns the backfill's id.
select {schema}.backfill(%(name)s, %(since)s::timestamptz, %(until)s::timestamptz, %(mode)s, %(max_active)s) as id
