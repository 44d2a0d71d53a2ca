-- Authors who would close a circle at the same time, and thousands of locked rows after others.
-- May run before the new code: older beats write as before, and do not look at what is new.

-- Which transaction has last written what could close a circle.
create table {schema}.last_author (
    what text not null
        constraint last_author_what_known check (what in ('periodic_task.after', 'task_group.waits_for')),
    transaction xid8 not null,
    constraint last_author_once primary key (what)
);

insert into {schema}.last_author (what, transaction) values ('periodic_task.after', '0'), ('task_group.waits_for', '0');

-- How often a beat has found locked what it was to look at. The rest comes before it.
alter table {schema}.dependency_turn add column tries int not null default 0;
drop index {schema}.dependency_turn_in_order;
create index dependency_turn_in_order on {schema}.dependency_turn (tries, upstream, downstream);
