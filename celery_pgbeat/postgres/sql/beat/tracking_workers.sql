-- Read the process ids of the workers that live and report on jobs.
select pid from {schema}.node where role = 'worker' and tracking and {schema}.is_recent(last_seen_at)
