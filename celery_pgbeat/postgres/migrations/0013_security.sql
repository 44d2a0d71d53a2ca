-- Functions that look names up in pg_catalog alone; headers of Celery's own and long texts are refused; trigger() and
-- explain() act for the owner. Nothing but definitions, which are applied with every migration.
-- May run before the new code; nodes of older packages work on beside it.

select 1;  -- no driver sends a text without a statement
