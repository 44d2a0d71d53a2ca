-- What a message may have beside its arguments, and JSON that every process can read.

-- Whether a text is a date, or a date and a time, in ISO 8601. Whether there is such a date, a beat checks in Python.
create or replace function {schema}.is_date_time(given text) returns boolean
language sql immutable
as $$
    select given ~ ('^[0-9]{4}-[0-9]{2}-[0-9]{2}'
        '([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.]([0-9]{3}|[0-9]{6}))?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?$')
$$;

-- Refuse a text with a control character: it would forge lines of logs, and a terminal would obey it. If the encoding
-- of the database is not UTF-8, only the control characters of ASCII are known.
create or replace function {schema}.refuse_control(field text, value text) returns void
language plpgsql
as $$
declare
    found text;
begin
    if getdatabaseencoding() = 'UTF8' then
        found := substring(value from '[' || chr(1) || '-' || chr(31) || chr(127) || '-' || chr(159) || ']');
    else
        found := substring(value from '[' || chr(1) || '-' || chr(31) || chr(127) || ']');
    end if;
    perform {schema}.refuse_for(
        field || ' has the control character U+' || lpad(upper(to_hex(ascii(found))), 4, '0') || ': take it out');
end
$$;

-- Refuse the names under which brokers, kombu and Celery keep data of their own: a queue of Redis is a key, and a queue
-- under one of their keys ends each worker that reads it.
create or replace function {schema}.refuse_route(field text, value text) returns void
language plpgsql
as $$
begin
    if value like any (array[
        'unacked%', 'celeryev%', 'celery-task-meta-%', 'celery-taskset-meta-%', 'amq.%', '%.pidbox'])
        or left(value, 7) = '_kombu.'
    then
        perform {schema}.refuse_for(
            format('%s is %s, a name that the broker or Celery keeps for itself: use another name', field,
                   {schema}.quoted(value)));
    end if;
    perform {schema}.refuse_control(field, value);
end
$$;

-- Why a JSON value cannot be read by every process that gets it; NULL where it can. See texts/plain_json.py.
create or replace function {schema}.not_plain_json(field text, given jsonb) returns text
language sql stable parallel safe
as $$
    select case
        when jsonb_path_exists(given, 'strict $.**{101}') then
            field || ' is nested more than 100 levels deep: pass an id or flatter data instead'
        when jsonb_path_exists(given, 'strict $.** ? (@.type() == "number" && (@ >= 1e309 || @ <= -1e309))') then
            field || ' has a number of more than 309 digits: pass it as text'
    end
    where octet_length(given::text) > 100
$$;

-- Refuse options that are unknown, or have a value of the wrong kind. NULL means the app's own value.
create or replace function {schema}.validate_options(options jsonb) returns void
language plpgsql
as $$
declare
    option text;
    given jsonb;
    kind text;
    wanted text;
begin
    for option, given, kind in select key, value, jsonb_typeof(value) from jsonb_each(options) loop
        if option in ('queue', 'priority') then
            perform {schema}.refuse_for(format('options has %s, which is a column', {schema}.quoted(option)),
                                        format('Set the column %s instead.', option));
        elsif option <> all ({schema}.known_options()) then
            perform {schema}.refuse_for(
                format('options has %s, which a periodic task cannot set', {schema}.quoted(option)),
                'Known are ' || array_to_string({schema}.known_options(), ', ') || '.');
        end if;
        wanted := case
            when kind = 'null' then null
            when option in ('confirm_timeout', 'countdown', 'soft_time_limit', 'time_limit', 'timeout') then
                case
                    when kind <> 'number' or given < '0' or given > '31622400'
                        then 'a number of seconds from 0 to 31622400'
                end
            when option = 'eta' then
                case when kind <> 'string' or not {schema}.is_date_time(given #>> '{}') then 'an ISO 8601 date-time' end
            when option = 'expires' then
                case
                    when kind = 'number' and given >= '-31622400' and given <= '31622400' then null
                    when kind = 'string' and {schema}.is_date_time(given #>> '{}') then null
                    else 'a number of seconds up to 31622400 or an ISO 8601 date-time'
                end
            when option in ('ignore_result', 'retry') then case when kind <> 'boolean' then 'true or false' end
            when option in ('headers', 'retry_policy') then case when kind <> 'object' then 'a dict' end
            when option = 'delivery_mode' then case when given not in ('1', '2', 'true') then '1 or 2' end
            when option = 'serializer' then case when given <> '"json"' then '''json'', the only one allowed' end
            when kind <> 'string' then 'text'
        end;
        if wanted is not null then
            perform {schema}.refuse_for(format(
                'options[%s] is %s, not %s', {schema}.quoted(option),
                case when kind = 'string' then {schema}.quoted(given #>> '{}') else left(given::text, 80) end, wanted));
        elsif option in ('exchange', 'routing_key', 'reply_to') and kind = 'string' then
            perform {schema}.refuse_route(format('options[%s]', {schema}.quoted(option)), given #>> '{}');
        elsif option in ('shadow', 'compression', 'exchange_type', 'MessageGroupId') and kind = 'string' then
            perform {schema}.refuse_control(format('options[%s]', {schema}.quoted(option)), given #>> '{}');
        elsif option = 'headers' and given ? 'pgbeat' then
            perform {schema}.refuse_for(
                'options[''headers''] has a header ''pgbeat'', which is ours: use another name');
        elsif option = 'headers' and given ?| {schema}.reserved_headers() then
            perform {schema}.refuse_for((
                select format('options[''headers''] has a header %s, which is Celery''s own: use another name',
                              {schema}.quoted(min(header)))
                from unnest({schema}.reserved_headers()) as header
                where given ? header));
        end if;
    end loop;
end
$$;
