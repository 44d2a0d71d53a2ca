-- Pick up a task for people; returns the name of its periodic task.
select {schema}.pick_up(%(id)s::uuid, %(owner)s::text, %(targets)s::text[]) as periodic_task
