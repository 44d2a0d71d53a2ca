-- Have beats look at the groups in which a job may have its turn though nothing says so; returns them.
--
-- Whatever changes in a group writes into `group_to_check`. This is for what no trigger has seen: a restored dump, say.
insert into {schema}.group_to_check (group_name)
select name from {schema}.groups_with_room() as name
where not exists (select from {schema}.group_to_check as known where known.group_name = name)
returning group_name
