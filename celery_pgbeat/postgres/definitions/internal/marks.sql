-- The marks of beats: which beat decides a periodic task, fills in a backfill or sends a job.

-- Whether a mark still counts. A mark is for a lease: that of the beat that made it, which is written beside it,
-- because settings may differ. A mark older than its lease counts as none. So does one more than a lease in the future,
-- from before the clock was set back. Less than that is a mark that was committed after this statement took its time.
--
-- Postgres puts the body in the place of a call (inlines it), as long as this is one select and sets nothing.
create or replace function {schema}.is_marked(marked_at timestamptz, lease interval) returns boolean
language sql stable parallel safe
as $$ select coalesce(marked_at between {schema}.now() - lease and {schema}.now() + lease, false) $$;
