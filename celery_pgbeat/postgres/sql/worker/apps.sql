-- Read the apps whose beats are alive, the one that has the schema first.
select name, first_seen_at, last_seen_at from {schema}.app
where last_seen_at between {schema}.now() - dead_after and {schema}.now() + dead_after
order by first_seen_at, name
