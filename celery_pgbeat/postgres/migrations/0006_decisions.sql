-- Failed jobs that wait for a decision. May run before the new code: its workers may end a failed job all the same.
alter table {schema}.periodic_task add column on_error text not null default 'fail'
    constraint periodic_task_on_error_known check (on_error in ('fail', 'ask'));
alter table {schema}.active_job add column on_error text not null default 'fail';
alter table {schema}.active_job drop constraint active_job_state_known;
alter table {schema}.active_job add constraint active_job_state_known
    check (state in ('pending', 'sent', 'running', 'retrying', 'buffered', 'error'));
