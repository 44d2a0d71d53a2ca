-- Mark up to %(batch)s due periodic tasks for this beat, and submit at once those of which nothing is to be decided.
--
-- Those have a `job`. The function is in mark.sql.
select {marked_columns}, job
from {schema}.mark(
    %(beat)s, %(lease)s::double precision, %(batch)s::int, %(fresh)s::int, %(lazy_names)s::text[],
    %(closed_queues)s::text[], %(closed_tasks)s::text[], at_once => true, on_time => %(on_time)s::double precision,
    pickup_deadline => %(pickup_deadline)s::double precision, full_acts_as => %(full_acts_as)s)
