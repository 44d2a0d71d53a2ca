-- In place of advisory locks: rows for a session to lock that makes or drops the days of the history.
-- May run before the new code.

alter table {schema}.last_author drop constraint last_author_what_known;
alter table {schema}.last_author add constraint last_author_what_known
    check (what in ('periodic_task.after', 'task_group.waits_for', 'make_days', 'prune'));
insert into {schema}.last_author (what, transaction) values ('make_days', '0'), ('prune', '0');
