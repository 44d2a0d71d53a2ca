-- Read the definition that a periodic task had at a revision, or before a change, and which arguments are not known.
select definition, hidden from {schema}.definition_before(%(name)s, %(revision)s::int, %(change)s::bigint)
