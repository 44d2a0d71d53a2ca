-- Rows whose arguments are shown nowhere.
-- May run before the new code; nodes of older packages work on beside it, and mask nothing.

alter table {schema}.periodic_task add column sensitive boolean not null default false;

drop function if exists {schema}.schedule(
    text, text, text, jsonb, jsonb, text, int, jsonb, text, timestamptz, text, timestamptz, timestamptz, int, interval,
    text, text, interval, int, interval, interval, text[], text, text, text, text, text, text, text, boolean);
