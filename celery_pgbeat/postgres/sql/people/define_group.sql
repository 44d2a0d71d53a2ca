-- Set the rules of a group; its state stays.
select {group} from {schema}.define_group(
    %(name)s, %(max_active)s::int, %(ordered)s, %(waits_for)s::text[], %(pause_on_failure)s, %(rate_limit)s)
