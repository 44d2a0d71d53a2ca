-- End many jobs at once whose messages a worker dropped; returns those whose rows were locked.
--
-- Each as end_unstarted.sql does. A row that another transaction has locked is left out: the others must not wait for
-- it. The caller reports it again. If it was not locked but ended at this very moment, the next report finds nothing.
select id from {schema}.end_unstarted_many(
    %(jobs)s::uuid[], %(runs)s::int[], %(attempts)s::int[], %(workers)s::text[], %(states)s::text[],
    %(reasons)s::text[], %(errors)s::text[], %(tasks)s::text[])
