-- Confirm that the broker took these jobs' messages: pending -> sent.
--
-- A worker may be faster: a job that already runs keeps its state. A job that another beat has taken over
-- is that beat's to confirm. Where nobody reports (tracking = send) our knowledge ends here, so the job is final.
-- What somebody holds at this moment is stepped over and named: another beat's recover locks a row before it sees that
-- its mark is new.
-- No index names what changes here, but `check_at`, which moves only where the new deadline comes before it, or where the
-- job was to be sent again.
select id, held from {schema}.confirm(%(jobs)s::uuid[], %(delays)s::jsonb, %(beat)s)
