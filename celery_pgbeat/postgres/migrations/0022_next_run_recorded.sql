-- A next_run_at that no beat has written is recorded. May run before the new code.

alter table {schema}.change drop constraint change_action_known;
alter table {schema}.change add constraint change_action_known check (
    action in ('created', 'changed', 'renamed', 'removed', 'paused', 'resumed', 'next_run_set', 'triggered',
               'backfilled', 'retried', 'resent', 'cancelled', 'failed', 'picked_up', 'released', 'finished')
);
