-- Read the names of the periodic tasks that replan() would have planned again, in name order.
select name from {schema}.to_replan(%(names)s::text[], %(zone)s::text) as name
