-- Rows that cannot be planned are few, and the dashboard and `doctor` ask for them among all.
-- May run before the new code.

create index periodic_task_with_problem on {schema}.periodic_task (name) where problem is not null;
