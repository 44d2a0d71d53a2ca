-- It has one more parameter now, with a default: older workers call the new function. May run before the new code.

drop function if exists {schema}.end_unstarted_many(uuid[], int[], int[], text[], text[], text[], text[], text[]);
