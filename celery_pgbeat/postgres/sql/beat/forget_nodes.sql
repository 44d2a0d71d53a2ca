-- Forget nodes, and declarations in code, that were not seen for a day, and notes of lost messages whose jobs go on.
--
-- Returns whether workers announce our tracker, and whether a job has waited with the broker for long.
-- The beat that stopped last is remembered: while no beat runs, it is all that is known of beats.
--
-- A job that has waited for long has its deadline as `check_at` (recheck.sql). So has one that runs: its deadline is at
-- most `pgbeat_dead_after` away, by default 30 seconds, and no such job is read. A job that waits and whose deadline is
-- that near is not read either: it is judged soon.
with forgotten as (
    delete from {schema}.node where last_seen_at < {schema}.now() - interval '1 day'
),
forgotten_beats as (
    delete from {schema}.stopped_beat
    where stopped_at < {schema}.now() - interval '1 day'
        and stopped_at < (select max(stopped_at) from {schema}.stopped_beat)
),
forgotten_declarations as (
    delete from {schema}.declaration as old
    where last_seen_at < {schema}.now() - interval '1 day'
        and exists (
            select from {schema}.declaration
            where app = old.app and last_seen_at > old.last_seen_at + interval '1 day')
),
forgotten_messages as (
    delete from {schema}.lost_message as lost
    where not exists (select from {schema}.active_job as job where job.id = lost.job and {is_still_lost})
)
select exists (select from {schema}.node where role = 'worker' and tracking) as tracking,
    exists (
        select from {schema}.active_job
        where check_at > {schema}.now() + interval '30 seconds' and check_at < 'infinity' and {waits_long}) as waits
