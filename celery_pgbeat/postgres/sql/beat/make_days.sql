-- Make the days of the history that are missing, 14 days ahead.
select {schema}.make_days()
