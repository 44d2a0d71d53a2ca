-- Pause all periodic tasks of a group.
select {group} from {schema}.pause_group(%(name)s, %(reason)s::text)
