-- List what a person has, and may pick up.
select * from {schema}.my_work(%(owner)s::text, %(targets)s::text[], %(most)s::int)
