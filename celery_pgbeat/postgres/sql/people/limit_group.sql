-- Set how many jobs of a group may be under way at a time.
select {group} from {schema}.limit_group(%(name)s, %(max_active)s::int)
