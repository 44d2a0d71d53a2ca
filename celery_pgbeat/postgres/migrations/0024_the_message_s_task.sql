-- A start and an end name the task of the message, so that a message of another task is not taken for the job's.
-- May run before the new code: nodes of older packages leave the task out, and nothing is compared for them.

-- A function with one more argument is another one; with both, a call without it would be ambiguous.
drop function if exists {schema}.start(uuid, int, int, uuid, text, double precision);
drop function if exists {schema}.end_unstarted_many(uuid[], int[], int[], text[], text[], text[], text[]);
