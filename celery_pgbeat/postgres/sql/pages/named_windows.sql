-- Read the blackout windows of these names.
select {schema}.windows_of(%(names)s::text[])::text as windows
