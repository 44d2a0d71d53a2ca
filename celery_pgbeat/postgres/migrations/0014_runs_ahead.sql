-- Runs that a beat has planned ahead, so that a mark can submit the next one at once. May run before the new code: an
-- older beat neither reads nor writes the two columns, and what it leaves in them no longer fits, which a mark sees.

alter table {schema}.periodic_task
    add column planned_ahead timestamptz[],
    add column jobs_ahead uuid[];

-- They have more parameters now. Those have defaults, so older beats call the new functions.
drop function if exists {schema}.mark(text, double precision, int, int, text[]);
drop function if exists {schema}.submit_free(
    text, text, text, text[], timestamptz[], timestamptz[], uuid[], timestamptz[], timestamptz[], text[], timestamptz[],
    timestamptz[], int[], text[], timestamptz[], timestamptz[], timestamptz[], double precision[]);
