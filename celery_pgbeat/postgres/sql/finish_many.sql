-- Finish many jobs at once; answers those to be told again, whose rows somebody else holds.
--
-- Each as finish.sql does. A row that somebody else holds, in a transaction that may be open for minutes, is stepped over: the others must not
-- wait for it. What was there to be finished when the statement began and was not, was locked; or it was ended by
-- somebody else at this very moment, and then the next telling finds nothing.
select id from {schema}.finish_many(
    %(jobs)s::uuid[], %(runs)s::int[], %(attempts)s::int[], %(tokens)s::uuid[], %(workers)s::text[],
    %(states)s::text[], %(errors)s::text[])
