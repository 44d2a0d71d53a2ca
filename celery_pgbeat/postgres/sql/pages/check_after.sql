-- Check what the periodic tasks of this transaction come after: later, or now and from then on at once.
--
-- Later is when this is called again, or the commit. So a file that many statements write may define them in any order.
-- function
create or replace function {schema}.check_after(later boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if later then
        set constraints {schema}.periodic_task_defined_after, {schema}.periodic_task_after_changed deferred;
    else
        set constraints {schema}.periodic_task_defined_after, {schema}.periodic_task_after_changed immediate;
    end if;
end
$$;
-- call
select {schema}.check_after(%(later)s)
