-- Have beats look at each task that comes after others.
--
-- Whatever lets one go on writes into `dependency_to_check`. This is for what no trigger has seen: a restored dump,
-- say.
insert into {schema}.dependency_to_check (downstream)
select distinct downstream from {schema}.dependency
where not exists (
    select from {schema}.dependency_to_check as known
    where known.upstream is null and known.downstream = dependency.downstream)
