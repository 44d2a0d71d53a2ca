-- Resume a paused group.
select * from {schema}.resume_group(%(name)s)
