-- Tell when a job was created, active or final; nothing where nobody knows it.
select created_at from {schema}.job where id = %(job)s::uuid
limit 1
