-- Read the occurrences of a time range that beats have sent, or would have sent in shadow, in order.
--
-- What ended before the range began was for an earlier occurrence, so the days before it are not read.
select periodic_task, scheduled_for from {schema}.finished_job
where scheduled_for between %(since)s and %(until)s and finished_at >= %(since)s
    and origin in ('schedule', 'catchup') and (state <> 'skipped' or reason = 'shadow')
union all
select periodic_task, scheduled_for from {schema}.active_job
where scheduled_for between %(since)s and %(until)s and origin in ('schedule', 'catchup')
order by 1, 2
