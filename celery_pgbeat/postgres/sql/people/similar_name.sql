-- Find the name that differs from an unknown one by one typing error.
select {schema}.similar_name(%(name)s) as name
