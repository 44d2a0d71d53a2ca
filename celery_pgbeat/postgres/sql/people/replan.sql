-- Have beats plan the next runs of periodic tasks again; returns the names of those concerned, in name order.
select name from {schema}.replan(%(names)s::text[], %(zone)s::text) as name
