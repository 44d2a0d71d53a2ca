-- Functions that have another name now. May not run before the new code: older beats and workers call them.
drop function if exists {schema}.admit(int), {schema}.release(text[]), {schema}.regroup();
drop function if exists {schema}.revival_of({schema}.active_job);
