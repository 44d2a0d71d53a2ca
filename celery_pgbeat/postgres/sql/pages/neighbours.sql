-- Read the names of the periodic tasks directly before and after one, of each at most `most`.
(
    select upstream as name, true as is_before from {schema}.dependency
    where downstream = %(name)s
    order by upstream
    limit %(most)s
)
union all
(
    select downstream, false from {schema}.dependency
    where upstream = %(name)s
    order by downstream
    limit %(most)s
)
