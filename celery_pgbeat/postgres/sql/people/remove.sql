-- Remove periodic tasks, but only those of this manager; returns the names of those that existed.
delete from {schema}.periodic_task
where name = any (%(names)s::text[]) and managed_by = %(managed_by)s
returning name
