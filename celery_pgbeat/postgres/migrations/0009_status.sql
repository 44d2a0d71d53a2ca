-- The views status and overdue, and explain(). Nothing but definitions, which are applied with every migration.
-- May run before the new code; nodes of older packages work on beside it.

select 1;  -- no driver sends a text without a statement
