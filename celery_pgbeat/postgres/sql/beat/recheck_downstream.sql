-- Have beats look at each task that comes after others.
--
-- Whatever lets one go on writes into `dependency_turn`. This is for what no trigger has seen: a restored dump, say.
insert into {schema}.dependency_turn (downstream)
select distinct downstream from {schema}.dependency
where not exists (
    select from {schema}.dependency_turn as turn
    where turn.upstream is null and turn.downstream = dependency.downstream)
