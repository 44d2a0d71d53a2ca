-- Note the jobs whose message the broker has lost, unless they go on meanwhile; forget the notes of `there`.
--
-- A note counts while `{is_still_lost}` (fragments.py). One from before the job was sent again is renewed. Two beats
-- note in the order of the ids, so they do not wait for each other in a circle.
with forgotten as (
    delete from {schema}.lost_message where job = any (%(there)s::uuid[])
)
insert into {schema}.lost_message as noted (job)
select id from {schema}.active_job
where id = any (%(jobs)s::uuid[]) and {waits_long}
order by id
on conflict (job) do update set noticed_at = excluded.noticed_at
where noted.noticed_at <= (select busy_until - pickup_deadline from {schema}.active_job where id = noted.job)
returning job
