-- `mark` returns one more column now, and `start` has one more parameter, with a default: older beats and workers call
-- the new functions. May run before the new code.

drop function if exists {schema}.mark(
    text, double precision, int, int, text[], boolean, double precision, double precision, text, text[], text[]);
drop function if exists {schema}.start(uuid, int, int, uuid, text, double precision, text);
