-- Find the name that is one slip away from an unknown one.
select {schema}.similar_name(%(name)s) as name
