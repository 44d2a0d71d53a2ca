-- Put the definition of a periodic task back to what it was at a revision, or before a change.
select {task_columns} from {schema}.revert(%(name)s, %(revision)s::int, %(change)s::bigint)
