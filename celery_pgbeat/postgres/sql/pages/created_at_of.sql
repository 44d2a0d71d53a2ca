-- Read when a job was created, active or final; nothing if there is no such job.
select created_at from {schema}.job where id = %(job)s::uuid
limit 1
