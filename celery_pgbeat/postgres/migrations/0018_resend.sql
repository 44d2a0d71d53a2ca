-- A person can have a job sent again, and cancel one that was sent. May run before the new code: nothing but the
-- definitions of the same version writes the new action or calls the function that has another name now.

alter table {schema}.change drop constraint change_action_known;
alter table {schema}.change add constraint change_action_known
    check (action in ('created', 'changed', 'renamed', 'removed', 'paused', 'resumed', 'triggered', 'backfilled',
                      'retried', 'resent', 'cancelled', 'failed', 'picked_up', 'released', 'finished'));

-- Renamed and not made anew, so that roles keep the right to call it. In a new schema it is not there yet.
do $$
begin
    if to_regprocedure('{schema}.cancel_unsent(uuid, text)') is not null then
        alter function {schema}.cancel_unsent(uuid, text) rename to cancel_unstarted;
    end if;
end
$$;
