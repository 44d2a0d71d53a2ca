-- Read one periodic task without what the role of a dashboard may not read: its arguments and its other options.
select {open_columns} from {schema}.periodic_task where name = %(name)s
