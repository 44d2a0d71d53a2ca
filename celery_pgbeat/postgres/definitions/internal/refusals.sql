-- What SQL can see for sure to be wrong is refused at once, with SQLSTATE 22023.
--
-- The rules and the words are those of celery_pgbeat/schedules, which checks the row again when it is planned. SQL
-- refuses a part of what Python refuses, and never more: what it does not know for sure it accepts, and a beat writes
-- the reason into `problem`. No backslashes in here: what they mean in a literal is a session setting. And few regular
-- expressions: Postgres keeps 32 compiled ones a session, and beyond that each match costs ten times as much. Small
-- letters by the collation C: in Turkish, that of I is another one.

-- A text in which what no log line and no terminal should get is escaped, as Python's repr does: control characters,
-- marks that turn the direction of writing, and characters without a width.
create or replace function {schema}.escaped(given text) returns text
language sql immutable parallel safe
as $$
    select case when given ~ '[^ -~]' then (
        select string_agg(case
            when code = 9 then chr(92) || 't'
            when code = 10 then chr(92) || 'n'
            when code = 13 then chr(92) || 'r'
            when code < 32 or code between 127 and 160 then chr(92) || 'x' || lpad(to_hex(code), 2, '0')
            when code = 1564 or code between 8203 and 8207 or code between 8232 and 8238 or code between 8288 and 8303
                or code = 65279 then chr(92) || 'u' || lpad(to_hex(code), 4, '0')
            else letter
        end, '' order by place)
        from unnest(string_to_array(given, null)) with ordinality as letters (letter, place)
        cross join lateral ascii(letter) as code)
    else given end
$$;

-- A text as Python's repr shows it: in quotes, on one line.
create or replace function {schema}.quoted(given text) returns text
language sql immutable parallel safe
as $$
    select case
        when given like '%''%' and given not like '%"%' then '"' || escaped || '"'
        else '''' || replace(escaped, '''', chr(92) || '''') || ''''
    end
    from {schema}.escaped(replace(given, chr(92), chr(92) || chr(92))) as escaped
$$;

-- Refuse for this reason, with the way out as a hint; where the reason is NULL, nothing is refused.
create or replace function {schema}.refuse_for(reason text, way_out text default '') returns void
language plpgsql
as $$
begin
    if reason is not null and way_out = '' then
        raise exception using errcode = 'invalid_parameter_value', message = reason;
    elsif reason is not null then
        raise exception using errcode = 'invalid_parameter_value', message = reason, hint = way_out;
    end if;
end
$$;

-- Refuse a text: what was given, then why, then the way out.
create or replace function {schema}.refuse(given text, reason text, way_out text default '') returns void
language plpgsql
as $$
begin
    perform {schema}.refuse_for(
        {schema}.quoted(case when char_length(given) <= 80 then given else left(given, 77) || '...' end)
            || ': ' || reason, way_out);
end
$$;
