-- Stop waiting for reports that no worker sends: jobs at the broker are tracked as `full` acts here.
--
-- Under `send` nothing more is reported of them, so they are final.
with deleted as (
    delete from {schema}.active_job as job
    where %(acts_as)s = 'send' and tracking = 'full' and state = 'sent'
    returning job
),
archived as (
    insert into {schema}.finished_job
    select final.* from deleted cross join lateral {schema}.archived(job, 'untracked') as final
),
moved as (
    update {schema}.active_job
    set tracking = 'result'
    where %(acts_as)s = 'result' and tracking = 'full' and state = 'sent'
    returning id
)
select (select count(*) from deleted) + (select count(*) from moved) as jobs
