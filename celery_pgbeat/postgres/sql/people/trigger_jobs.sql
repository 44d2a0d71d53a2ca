-- Start many jobs now, with arguments of their own; returns the id of each, in their order.
select job from {schema}.trigger_many(%(jobs)s::jsonb, %(force)s) order by index
