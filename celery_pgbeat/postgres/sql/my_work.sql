-- List what somebody has, and what he may pick up.
select * from {schema}.my_work(%(owner)s::text, %(targets)s::text[], %(most)s::int)
