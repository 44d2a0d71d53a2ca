-- Cancel what a backfill has not decided yet.
select ({schema}.cancel_backfill(%(id)s::uuid)).id
