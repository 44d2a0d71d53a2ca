-- What a beat knows of its broker. May run before the new code: code that does not know the columns leaves them NULL.

alter table {schema}.node
    add column broker_problem text,
    add column broker_problem_since timestamptz;

-- They have two more parameters now. Those have defaults, so older beats call the new functions.
drop function if exists {schema}.mark(
    text, double precision, int, int, text[], boolean, double precision, double precision, text);
drop function if exists {schema}.look(double precision, text[]);
