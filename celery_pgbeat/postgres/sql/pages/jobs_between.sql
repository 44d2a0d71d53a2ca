-- Read the jobs whose ids are in this range, both ends included; active ones and those of the history.
--
-- A range, so that the beginning of an id finds its job by the indexes on the id.
select * from {schema}.job where id between %(lowest)s::uuid and %(highest)s::uuid
limit %(limit)s
