-- Read one job, active or final.
select * from {schema}.job where id = %(id)s::uuid limit 1
