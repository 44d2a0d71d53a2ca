-- List the modes of the other beats that are alive, each with the host of one of them.
select mode, min(hostname) as hostname
from {schema}.node
where role = 'beat' and id <> %(beat)s and {schema}.is_recent(last_seen_at)
group by 1
order by 1
