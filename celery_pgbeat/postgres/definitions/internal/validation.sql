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

-- Refuse days of the month that none of the months has. Only plain lists are looked at: `30,31` of `2` or `feb,apr`.
create or replace function {schema}.validate_dates(given text, days text, months text) returns void
language plpgsql
as $$
declare
    named constant text := lower(months collate "C");
    day text;
    first_day int := 31;
    numbers int[];
    longest int;
begin
    if named !~ '^([0-9]+|[a-z]{3})(,([0-9]+|[a-z]{3}))*$' then
        return;
    end if;
    foreach day in array string_to_array(days, ',') loop
        if day !~ '^[0-9]+(-[0-9]+)?(/[0-9]+)?$' then
            return;
        end if;
        first_day := least(first_day, substring(day from '^[0-9]+')::int);
        if substring(day from '-([0-9]+)')::int < first_day then
            return;  -- 30-2 goes over the month's end
        end if;
    end loop;
    select array_agg(distinct number order by number),
        max(case when number = 2 then 29 when number in (4, 6, 9, 11) then 30 else 31 end)
    into numbers, longest
    from unnest(string_to_array(named, ',')) as month
    cross join lateral coalesce(array_position(array[{month_names}], month), month::int) as number;
    if first_day > longest then
        perform {schema}.refuse(
            given, format('day %s never occurs in month %s', first_day, array_to_string(numbers, ',')));
    end if;
end
$$;

-- Refuse a number that is out of its field's range; anything else that is not a number passes.
create or replace function {schema}.validate_number(given text, field text, number text) returns void
language plpgsql
as $$
declare
    low constant int := {lowest_of_field};
    high constant int := {highest_of_field};
begin
    if number ~ '^[0-9]+$' and number::numeric not between low and high then
        perform {schema}.refuse(given, format('%s %s is not in %s-%s', field, number::numeric, low, high));
    end if;
end
$$;

-- Refuse a field of a cron line that can never work. What only days have (L, 15W, mon#2) and what is hashed (H) is left
-- to Python.
create or replace function {schema}.validate_cron_field(given text, field text, value text) returns void
language plpgsql
as $$
declare
    element text;
    bound text;
    names constant text[] := {names_of_field};
    not_understood constant text := ' is not a number' || case when names is null then '' else ', a name' end
        || ', a range, a list or a step';
begin
    foreach element in array string_to_array(value, ',') loop
        continue when element like 'H%';
        continue when field = 'day' and element ~* '^(L(-[0-9]+)?|([0-9]+|L)W)$';
        continue when field = 'weekday' and element ~* '^([0-9a-z]+#([0-9]+|L)|([0-9]|[a-z]{3})L|L[0-9])$';
        if element = '' then
            perform {schema}.refuse(
                given, format('%s %s has an empty element in its list', field, {schema}.quoted(value)));
        elsif element !~ '^([*]|[0-9A-Za-z_]+(-[0-9A-Za-z_]+)?)(/[0-9]+)?$' then
            perform {schema}.refuse(given, format('%s %s', field, {schema}.quoted(element)) || not_understood);
        elsif element ~ '/0+$' then
            perform {schema}.refuse(given, 'a step of 0 in ' || field);
        end if;
        foreach bound in array string_to_array(split_part(element, '/', 1), '-') loop
            if bound ~ '^[0-9]+$' then
                perform {schema}.validate_number(given, field, bound);
            elsif bound <> '*' and lower(bound collate "C") = any (names) is not true then
                perform {schema}.refuse(given, format('%s %s', field, {schema}.quoted(bound)) || not_understood);
            end if;
        end loop;
    end loop;
end
$$;

-- Refuse what is no cron line of five, six (seconds first) or seven fields (year last), or a nickname. `both_days` is
-- Celery's rule, by which a day has to match its date and its weekday.
create or replace function {schema}.validate_cron(given text, body text, both_days boolean) returns void
language plpgsql
as $$
declare
    line text := body;
    fields text[] := array[{cron_fields}];
    words text[];
    day int;
begin
    if starts_with(line, 'TZ=') or starts_with(line, 'CRON_TZ=') then
        perform {schema}.validate_timezone(split_part(split_part(line, ' ', 1), '=', 2));
        line := ltrim(substr(line, strpos(line || ' ', ' ')));
    end if;
    if line like '@%' then
        if lower(line collate "C") = '@reboot' then
            perform {schema}.refuse(
                given, '@reboot has no meaning here, beats come and go; use @hourly, or trigger the task');
        elsif lower(line collate "C") not in ({nicknames}) then
            perform {schema}.refuse(
                given, {schema}.quoted(line) || ' is not one of {nicknames_as_text}, @every <duration>');
        end if;
        return;
    end if;
    words := array_remove(string_to_array(line, ' '), '');
    if cardinality(words) > 1
        and words[cardinality(words)] ~ '^([A-Za-z_]{3,}/[A-Za-z][A-Za-z_/+-]*[0-9]*|UTC|GMT)$'
    then
        perform {schema}.refuse(
            given, format('a zone is no field: set timezone to %s, or write CRON_TZ=%s in front',
                          {schema}.quoted(words[cardinality(words)]), words[cardinality(words)]));
    end if;
    case cardinality(words)
        when 5 then fields := fields[2:6];
        when 6 then fields := fields[1:6];
        when 7 then null;
        else
            if cardinality(words) = 1 and words[1] ~ '^[0-9]*[1-9][0-9]*$' then
                perform {schema}.refuse(given, format('not a schedule: did you mean ''every %ss''?', words[1]));
            end if;
            perform {schema}.refuse(given, format('cron has 5, 6 or 7 fields, not %s', cardinality(words)));
    end case;
    for i in 1 .. cardinality(words) loop
        continue when words[i] = '*' or words[i] = '?' and fields[i] in ('day', 'weekday');
        perform {schema}.validate_cron_field(given, fields[i], words[i]);
    end loop;
    -- By cron's rule a date and a weekday are alternatives, unless one of the two starts with a star.
    day := array_position(fields, 'day');
    if left(words[day], 1) <> '*' and left(words[day + 1], 1) <> '*'
        and (both_days or left(words[day + 2], 1) in ('*', '?'))
    then
        perform {schema}.validate_dates(given, words[day], words[day + 1]);
    end if;
end
$$;

-- Refuse what is no ISO 8601 duration, or none that is longer than nothing.
create or replace function {schema}.validate_duration(given text, duration text) returns void
language plpgsql
as $$
begin
    if duration !~* replace('^-?P(#Y)?(#M)?(#W)?(#D)?(T(#H)?(#M)?(#S)?)?$', '#', '[0-9]+([.,][0-9]+)?')
        or duration ~* '[PT]$'
    then
        perform {schema}.refuse(
            given, {schema}.quoted(duration) || ' is not an ISO 8601 duration such as PT5M or P1DT12H');
    elsif duration like '-%' or duration !~ '[1-9]' then
        perform {schema}.refuse(given, 'an interval must be longer than 0');
    end if;
end
$$;

-- Refuse what cannot follow `every`: `30s`, `1h30m`, `5 minutes`, `minute`, or an ISO 8601 duration.
create or replace function {schema}.validate_interval(given text, body text) returns void
language plpgsql
as $$
declare
    unit text;
begin
    if upper(left(body, 1)) = 'P' then
        perform {schema}.validate_duration(given, body);
        return;
    elsif body ~* '(\m(at|on)\M|^(mon|tues|wednes|thurs|fri|satur|sun|week)day)' then
        perform {schema}.refuse(given, 'an interval has no time of day: write cron, such as 0 3 * * * (at 3:00), '
                                       '12 * * * * (at minute 12) or 0 9 * * mon');
    elsif body like '-%' then
        perform {schema}.refuse(given, 'an interval must be longer than 0');
    end if;
    for unit in select letters[1] from regexp_matches(body, '[A-Za-z]+', 'g') as letters loop
        if rtrim(lower(unit collate "C"), 's') in ('month', 'mon', 'year', 'yr', 'y', 'quarter') then
            perform {schema}.refuse(
                given, format('a %s has no fixed length: write P1M or P1Y, which follow the calendar',
                              rtrim(lower(unit collate "C"), 's')));
        elsif lower(unit collate "C") not in ({units_of_time}) then
            perform {schema}.refuse(
                given, {schema}.quoted(unit) || ' is not a unit of time: use ms, s, m, h, d or w');
        end if;
    end loop;
    if strpos('0123456789', left(body, 1)) > 0 and body !~ '[1-9]' then
        perform {schema}.refuse(given, 'an interval must be longer than 0');
    end if;
end
$$;

-- Refuse a full date, such as 2026-12-08, alone or with a time, that does not exist; anything else passes.
create or replace function {schema}.validate_moment(given text, moment text) returns void
language plpgsql
as $$
declare
    fields constant text[] := array['month', 'day', 'hour', 'minute', 'second'];
    numbers constant text[] := regexp_match(
        moment, '^[0-9]{4}-([0-9]{2})-([0-9]{2})(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?)?(?![0-9])', 'i');
    year int;
begin
    if numbers is null then
        return;
    end if;
    for i in 1 .. 5 loop
        exit when numbers[i] is null;
        perform {schema}.validate_number(given, fields[i], numbers[i]);
    end loop;
    perform {schema}.validate_dates(given, numbers[2], numbers[1]);
    year := left(moment, 4)::int;
    if numbers[1] = '02' and numbers[2] = '29' and (year % 4 <> 0 or year % 100 = 0 and year % 400 <> 0) then
        perform {schema}.refuse(given, format('day 29 never occurs in month 2 of %s', year));
    end if;
end
$$;

-- Refuse ISO 8601 that can never work: a date or date-time, a duration, or `R5/start/end/step`.
create or replace function {schema}.validate_iso(given text, body text) returns void
language plpgsql
as $$
declare
    parts text[];
begin
    if body !~* '^R[0-9]*/' then
        if body ~* '^-?P' then
            perform {schema}.validate_duration(given, body);
        else
            perform {schema}.validate_moment(given, body);
        end if;
        return;
    end if;
    parts := string_to_array(substr(body, strpos(body, '/') + 1), '/');
    if body ~* '^R0+/' then
        perform {schema}.refuse(given, 'R0 never occurs: to run once, write a plain date-time');
    elsif cardinality(parts) > 3 then
        perform {schema}.refuse(given, format('R/start/end/step has up to 3 parts after R, not %s',
                                                cardinality(parts)));
    elsif parts[cardinality(parts)] !~* '^[-+]*P' then
        perform {schema}.refuse(given, 'the last part must be a duration such as PT1H, not '
                                       || {schema}.quoted(parts[cardinality(parts)]));
    end if;
    perform {schema}.validate_duration(given, parts[cardinality(parts)]);
    for i in 1 .. cardinality(parts) - 1 loop
        perform {schema}.validate_moment(given, parts[i]);
    end loop;
end
$$;

-- Refuse a systemd calendar event, `[weekdays] [date] [time] [zone]`, that can never work: its numbers, its steps and
-- its zone.
create or replace function {schema}.validate_calendar(given text, body text) returns void
language plpgsql
as $$
declare
    words constant text[] := array_remove(string_to_array(body, ' '), '');
    word text;
    fields text[];
    parts text[];
    element text;
    bound text;
begin
    word := words[cardinality(words)];
    if cardinality(words) > 1 and word ~ '^[A-Za-z][A-Za-z0-9_+/-]*$'
        and lower(left(word, 3) collate "C") not in ({weekday_names})
    then
        perform {schema}.validate_timezone(word);
    end if;
    foreach word in array words loop
        if word ~ '^[0-9*,./]+(:[0-9*,./]+){1,2}$' then
            fields := array['hour', 'minute', 'second'];
            parts := string_to_array(word, ':');
        elsif word ~ '^([0-9*,./]+-)?[0-9*,./]+[-~][0-9*,./]+$' then
            parts := string_to_array(translate(word, '~', '-'), '-');
            fields := (array['year', 'month', 'day'])[4 - cardinality(parts):3];
        else
            continue;
        end if;
        for i in 1 .. cardinality(parts) loop
            foreach element in array string_to_array(parts[i], ',') loop
                if element ~ '/0+([.]0+)?$' then
                    perform {schema}.refuse(given, 'a step of 0 in ' || fields[i]);
                end if;
                continue when fields[i] = 'year';  -- of two digits or four: left to Python
                foreach bound in array string_to_array(split_part(element, '/', 1), '..') loop
                    perform {schema}.validate_number(given, fields[i], bound);
                end loop;
            end loop;
        end loop;
        if fields[cardinality(fields)] = 'day' and strpos(word, '~') = 0 then
            perform {schema}.validate_dates(
                given, replace(parts[cardinality(parts)], '..', '-'), parts[cardinality(parts) - 1]);
        end if;
    end loop;
end
$$;

-- Refuse a recurrence set of RFC 5545 that can never work: only what would make it endless, or puts it nowhere.
create or replace function {schema}.validate_rrule(given text, body text) returns void
language plpgsql
as $$
declare
    zone constant text := substring(body from ';TZID=([^:;]*)');
begin
    if body ~* '(:|;|^)INTERVAL=0+(;|$)' then
        perform {schema}.refuse(given, 'INTERVAL 0 is not in 1-1000000000');
    end if;
    if zone is not null then
        perform {schema}.validate_timezone(zone);
    end if;
end
$$;

-- The text without the blanks around it, which are Python's (of ASCII).
create or replace function {schema}.unpadded(given text) returns text
language sql immutable parallel safe
as $$
    select btrim(
        given, ' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13) || chr(28) || chr(29) || chr(30) || chr(31))
$$;

-- What is before the first colon, in small letters; NULL where there is none.
create or replace function {schema}.prefix_of(given text) returns text
language sql immutable parallel safe
as $$
    select case when strpos(given, ':') > 0 then lower({schema}.unpadded(split_part(given, ':', 1)) collate "C") end
$$;

-- Whether a text is a recurrence set: it may be longer than others, and has semicolons of its own.
create or replace function {schema}.is_recurrence_set(given text) returns boolean
language sql immutable parallel safe
as $$
    select coalesce(
        {schema}.prefix_of(translate(given, ';', ':')) in ('rrule', 'dtstart', 'exdate', 'rdate', 'exrule'), false)
$$;

-- What may stand before the colon of a schedule, to say its kind.
create or replace function {schema}.schedule_prefixes() returns text[]
language sql immutable parallel safe
as $$ select array[{schedule_prefixes}] $$;

-- The kind of a schedule without a prefix, by its text; NULL where it is none that we know.
create or replace function {schema}.kind_of(body text) returns text
language plpgsql immutable parallel safe
as $$
declare
    words constant text[] := array_remove(string_to_array(body, ' '), '');
    word constant text := lower(words[1] collate "C");
begin
    return case
        when cardinality(words) between 5 and 7 and strpos('0123456789*', left(word, 1)) > 0 then 'cron'
        when word in ('every', '@every') and cardinality(words) > 1 then 'every'
        when left(word, 5) in ('rrule', 'freq=', 'dtsta', 'rdate', 'exdat', 'exrul') then 'rrule'
        when word ~ '^(r[0-9]*/|-?p[0-9t])' then 'iso'
        when cardinality(words) <= 4 and (
            left(word, 3) in ({weekday_names})
            or word in ('minutely', 'hourly', 'daily', 'weekly', 'quarterly', 'yearly', 'annually', 'anually',
                        'semiannually', 'semi-annually', 'biannually', 'bi-annually')
            or body ~ '[0-9*] *[-~:] *[0-9*]|@[0-9]') then 'calendar'
        when left(word, 1) = '@' or starts_with(body, 'TZ=') or starts_with(body, 'CRON_TZ=') then 'cron'
        when cardinality(words) between 5 and 7 or body ~ '^[0-9*/,?LWH -]+$' then 'cron'
    end;
end
$$;

-- Refuse a schedule of any kind that can never work; `given` is the whole text that it is a part of, which a refusal
-- shows.
create or replace function {schema}.validate_schedule_in(given text, schedule text) returns void
language plpgsql
as $$
declare
    body text := btrim(schedule);
    kind text := lower(rtrim(split_part(body, ':', 1)) collate "C");
    amazon text := (regexp_match(btrim(schedule), '^(cron|rate|at) *[(]', 'i'))[1];
    reason text := 'not a schedule: write cron (*/5 * * * *), an interval (every 30s), ISO 8601 '
        '(R/PT1H, 2026-12-09), a calendar event (Mon..Fri 09:00), RRULE:... or solar: ...';
begin
    if kind = any ({schema}.schedule_prefixes()) and strpos(body, ':') > 0 then
        body := ltrim(substr(body, strpos(body, ':') + 1));
    else
        kind := {schema}.kind_of(body);
    end if;
    if char_length(schedule) > 4000 and {schema}.is_recurrence_set(schedule) then
        perform {schema}.refuse(given, 'longer than 4,000 characters');
    elsif char_length(schedule) > 250 and not {schema}.is_recurrence_set(schedule) then
        perform {schema}.refuse(given, 'longer than 250 characters');
    elsif octet_length(schedule) <> char_length(schedule) then
        perform {schema}.refuse(
            given, {schema}.quoted(substring(schedule from '[^' || chr(1) || '-' || chr(127) || ']'))
                      || ' is not an ASCII character');
    elsif body ~ '[^ -~]' then
        return;  -- tabs and line breaks: left to Python
    elsif amazon is not null then
        perform {schema}.refuse(
            given, format('not a schedule: %s(...) is Amazon''s notation; write ', amazon)
                || case lower(amazon collate "C")
                    when 'cron' then 'its fields without the year, and weekdays by name: 0 13 * * MON-FRI'
                    when 'rate' then 'every 5m'
                    else 'the time alone: 2026-12-09T09:00'
                end);
    end if;
    if lower(split_part(body, ' ', 1) collate "C") in ('every', '@every') then
        body := ltrim(substr(body, strpos(body, ' ')));
    end if;
    case kind
        when 'cron', 'crontab' then
            perform {schema}.validate_cron(given, body, kind = 'crontab');
        when 'every' then
            perform {schema}.validate_interval(given, body);
        when 'iso' then
            perform {schema}.validate_iso(given, body);
        when 'calendar' then
            perform {schema}.validate_moment(given, body);
            perform {schema}.validate_calendar(given, body);
        when 'rrule' then
            perform {schema}.validate_rrule(given, body);
        when 'solar' then
            null;
        else
            if body ~* '^[0-9]+([.][0-9]+)? *[a-z]' then
                reason := format('not a schedule: did you mean ''every %s''?', body);
            end if;
            perform {schema}.refuse(given, reason);
    end case;
end
$$;

-- The windows of one text, with `;` between them. A recurrence set is the only one in its text.
create or replace function {schema}.windows_in(given text) returns text[]
language sql immutable parallel safe
as $$
    select case
        when given = '' or {schema}.is_recurrence_set(given) then array[given]
        else string_to_array(given, ';')
    end
$$;

-- The name in `window: name`; NULL where a window is not referred to but written out.
create or replace function {schema}.window_referred_to(body text) returns text
language sql immutable parallel safe
as $$
    select case
        when {schema}.prefix_of(body) = 'window' then {schema}.unpadded(substr(body, strpos(body, ':') + 1))
    end
$$;

-- Refuse a window that is written out and can never work: a schedule that opens it, and how long it stays open.
create or replace function {schema}.validate_window(given text, body text) returns void
language plpgsql
as $$
declare
    words constant text[] := string_to_array(body, ' ');
    duration constant text := coalesce(words[cardinality(words)], '');
    opener constant text := rtrim(left(body, -char_length(duration)));
begin
    if opener <> '' and duration ~* '^[0-9]+[smhdw]$' then
        perform {schema}.refuse(
            given,
            format('a duration must be in ISO 8601: write P%s%s instead of %s',
                   case when lower(right(duration, 1) collate "C") in ('d', 'w') then '' else 'T' end,
                   upper(duration collate "C"), {schema}.quoted(duration)));
    end if;
    if opener = '' or left(ltrim(duration, '+-'), 1) not in ('P', 'p') then
        perform {schema}.refuse(
            given, {schema}.quoted(body) || ' is not a schedule and a duration, such as cron: 0 0 * * * PT5H');
    end if;
    perform {schema}.validate_schedule_in(given, opener);
    perform {schema}.validate_duration(given, duration);
end
$$;

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

-- Why a value is none of those that its column knows; NULL where it is one.
create or replace function {schema}.not_one_of(field text, value text, variadic known text[]) returns text
language sql stable parallel safe
as $$
    select case
        when (value = any (known)) is not true then format(
            '%s is %s, not one of %s', field, coalesce({schema}.quoted(value), 'null'), array_to_string(known, ', '))
    end
$$;

-- Why a span of time is out of its column's range; NULL where it is not. In days, for to Postgres a year has 360 of
-- them.
create or replace function {schema}.not_a_span(field text, span interval, may_be_nothing boolean, longest_days int)
returns text
language sql stable parallel safe
as $$
    select case
        when may_be_nothing and span < interval '0' then
            format('%s is %s; it must be at least 0', field, span)
        when not may_be_nothing and span <= interval '0' then
            format('%s is %s; it must be more than 0', field, span)
        when span > longest_days * interval '1 day' then
            format('%s is %s; it must be at most %s days', field, span, longest_days)
    end
$$;

-- Why a text is too long for what is a name of something else or a few words; NULL where it is not.
create or replace function {schema}.not_a_short_text(field text, value text) returns text
language sql stable parallel safe
as $$
    select format('%s has %s characters, more than 1000', field, char_length(value)) where char_length(value) > 1000
$$;

-- Why a number is no priority; NULL where it is one.
create or replace function {schema}.not_a_priority(priority int) returns text
language sql stable parallel safe
as $$
    select format('priority %s is not in 0-255', priority) where priority not between 0 and 255
$$;

-- Why an instant is one that a driver cannot carry; NULL where it is not.
create or replace function {schema}.not_an_instant(field text, value timestamptz) returns text
language sql stable parallel safe
as $$
    select format('%s is %s, outside the years 1 to 9999', field, to_json(value) #>> '{}')
    where value not between '0001-01-02 00:00+00' and '9999-12-30 00:00+00'
$$;

-- All names that differ from this one by one typing error: a letter too many, too few, wrong, or two of them swapped.
-- Their number grows with the length of the name, the cost of making them with its square. A name has at most 200
-- characters: none is similar to a longer one.
create or replace function {schema}.similar_names(name text) returns text[]
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
    with cut as (
        select left(similar_names.name, at) as head, substr(similar_names.name, at + 1) as tail
        from generate_series(0, char_length(similar_names.name)) as at
        where char_length(similar_names.name) <= 200
    ),
    meant as (
        select head || substr(tail, 2) as name from cut
        union
        select head || substr(tail, 2, 1) || left(tail, 1) || substr(tail, 3) from cut
        union
        select head || letter || rest
        from cut
        cross join lateral (values (tail), (substr(tail, 2))) as kept (rest)
        cross join regexp_split_to_table(
            'abcdefghijklmnopqrstuvwxyz0123456789_-.: ABCDEFGHIJKLMNOPQRSTUVWXYZ', '') as letter
    )
    select array(select meant.name from meant)
$$;

-- Why a text is no name of 1 to 200 characters; NULL where it is one.
create or replace function {schema}.not_a_name(field text, value text) returns text
language sql stable parallel safe
as $$
    select case
        when value is null then field || ' is null, not 1 to 200 characters'
        when char_length(value) not between 1 and 200 then
            format('%s has %s characters, not 1 to 200', field, char_length(value))
    end
$$;

-- Why a list is none of names; NULL where it is one, or no list is given.
create or replace function {schema}.not_names(field text, given text[], most int) returns text
language sql stable parallel safe
as $$
    select case
        when given is null then null
        when cardinality(given) = 0 then field || ' is empty: name a user or a role, or leave it out for any person'
        when array_ndims(given) > 1 then field || ' is a list of lists, not one list of names'
        when cardinality(given) > most then format('%s has %s names, more than %s', field, cardinality(given), most)
        else (
            select {schema}.not_a_name(field || '[' || place - 1 || ']', name)
            from unnest(given) with ordinality as named (name, place)
            where name is null or char_length(name) not between 1 and 200
            order by place
            limit 1)
    end
$$;

-- Why a column contradicts the kind of the row; NULL where none does. No message is sent of a task for people, so
-- nothing may be set that is about a message, its worker or its end there.
create or replace function {schema}.not_of_its_kind(task {schema}.periodic_task) returns text
language sql stable parallel safe
as $$
    select case
        when task.kind <> 'human' then case
            when task.target is not null then 'target is set, but kind is ''task'': only a task for people has a target'
            when task.due_in is not null then 'due_in is set, but kind is ''task'': only a task for people has one'
        end
        else (
            select name || ' is set, but kind is ''human'': no message is sent of a task for people, leave it out'
            from (values
                ('queue', task.queue is not null), ('priority', task.priority is not null),
                ('options', task.options <> '{}'), ('min_gap', task.min_gap is not null),
                ('max_run_time', task.max_run_time is not null), ('on_lost', task.on_lost <> 'give_up'),
                ('on_error', task.on_error <> 'fail'), ('tracking', task.tracking <> 'full'),
                ('a BeatLazyFunc', task.lazy)) as given (name, is_set)
            where is_set
            limit 1)
    end
$$;

-- Why one of the plain columns is wrong; NULL where none is.
create or replace function {schema}.wrong_column(task {schema}.periodic_task) returns text
language plpgsql stable
as $$
begin
    return coalesce(
        {schema}.not_a_short_text('task', task.task),
        {schema}.not_a_short_text('queue', task.queue),
        {column_checks},
        case when task.end_at < task.start_at then
            format('end_at %s is before start_at %s', to_json(task.end_at) #>> '{}', to_json(task.start_at) #>> '{}')
        end,
        case when task.group_name is not null then {schema}.not_a_name('group_name', task.group_name) end,
        {schema}.not_names('target', task.target, 100),
        {schema}.not_names('after', task.after, 100),
        {schema}.not_of_its_kind(task),
        case
            when task.kind = 'human' and task.overlap = 'terminate_other'
            then 'overlap is ''terminate_other'', but kind is ''human'': nothing terminates a person, use cancel_other'
        end);
end
$$;

-- Arguments as an error may show them: those of a sensitive row not at all.
create or replace function {schema}.shown_arguments(task {schema}.periodic_task, given jsonb) returns text
language sql stable parallel safe
as $$
    select case
        when given is null then 'null'
        when task.sensitive is not false then '<sensitive>'
        else left(given::text, 80)
    end
$$;

-- Why the arguments of a periodic task, or of one job of it, are wrong; NULL if they are right.
create or replace function {schema}.wrong_arguments(task {schema}.periodic_task) returns text
language plpgsql stable
as $$
declare
    size int;
begin
    if jsonb_typeof(task.args) is distinct from 'array' then
        return format('args is %s, not a JSON array', {schema}.shown_arguments(task, task.args));
    elsif jsonb_typeof(task.kwargs) is distinct from 'object' then
        return format('kwargs is %s, not a JSON object', {schema}.shown_arguments(task, task.kwargs));
    end if;
    size := octet_length(task.args::text) + octet_length(task.kwargs::text);
    if size > 65536 then
        return format('args and kwargs have %s bytes together, more than 65536: store the data elsewhere and pass its '
                          'key', size);
    elsif size > 100 then  -- else not_plain_json() would accept both unread
        return coalesce({schema}.not_plain_json('args', task.args), {schema}.not_plain_json('kwargs', task.kwargs));
    end if;
    return null;
end
$$;

-- Refuse a definition of a periodic task that can never work. Called by the row trigger, so its errors come before
-- those of the CHECKs.
create or replace function {schema}.validate_periodic_task(task {schema}.periodic_task) returns void
language plpgsql
as $$
declare
    size constant int := octet_length(task.options::text);
begin
    perform {schema}.refuse_for({schema}.not_a_name('name', task.name));
    perform {schema}.refuse_for(
        case
            when task.task = '' then 'task is empty'
            when task.task is null and task.kind is distinct from 'human' then 'task is null'
        end,
        'Write the name by which workers know the Celery task.');
    perform {schema}.refuse_for({schema}.wrong_arguments(task));
    perform {schema}.refuse_for(case when jsonb_typeof(task.options) is distinct from 'object' then
        format('options is %s, not a JSON object', coalesce(left(task.options::text, 80), 'null')) end);
    perform {schema}.refuse_for(
        case when size > 65536 then format('options has %s bytes, more than 65536', size) end,
        'Store the data elsewhere and pass its key.');
    perform {schema}.refuse_for({schema}.not_plain_json('options', task.options));
    perform {schema}.refuse_control('name', task.name);
    perform {schema}.refuse_control('task', task.task);
    perform {schema}.refuse_control('target', array_to_string(task.target, ''));
    perform {schema}.refuse_control('after', array_to_string(task.after, ''));
    perform {schema}.refuse_control('group_name', task.group_name);
    perform {schema}.refuse_route('queue', task.queue);
    if task.options <> '{}' then
        perform {schema}.validate_options(task.options);
    end if;
    perform {schema}.refuse_for(coalesce({schema}.not_a_priority(task.priority), {schema}.wrong_column(task)));
    if task.timezone is not null then
        perform {schema}.validate_timezone(task.timezone);
    end if;
    if task.schedule is not null then
        perform {schema}.validate_schedule_in(task.schedule, task.schedule);
        -- Not refused: the database does not know pgbeat_min_interval.
        if task.schedule ~* ('([^0-9.,]|^)(0*[.,][0-9]+ ?s(ec(ond)?s?)?|[0-9]{1,3}([.][0-9]*)? ?ms|'
                             '[0-9]{1,6}([.][0-9]*)? ?us)$') then
            raise notice '%: a run more often than once a second needs a lower pgbeat_min_interval',
                {schema}.quoted(task.schedule);
        end if;
    end if;
    if task.blackout is not null then
        perform {schema}.validate_windows('blackout', task.blackout);
    end if;
end
$$;

-- Refuse what is wrong of what an author writes beside the definition, and of the texts without effect; `stored` is the
-- row as it was, NULL for a new one. A value from before a rule existed prevents no other write. A CHECK would show the
-- whole row in its error, and the arguments of a sensitive one with it.
create or replace function {schema}.validate_state(task {schema}.periodic_task, stored {schema}.periodic_task)
returns void
language plpgsql
as $$
begin
    perform {schema}.refuse_for(coalesce(
        case when task.enabled is null then 'enabled is null, not true or false' end,
        case when task.managed_by is null then 'managed_by is null, not a text' end,
        {schema}.not_a_short_text('managed_by', nullif(task.managed_by, stored.managed_by)),
        {short_texts},
        {schema}.not_a_short_text('pause_reason', nullif(task.pause_reason, stored.pause_reason)),
        {schema}.not_a_short_text('paused_by', nullif(task.paused_by, stored.paused_by)),
        {schema}.not_a_short_text('declared_timezone', nullif(task.declared_timezone, stored.declared_timezone)),
        {schema}.not_an_instant('paused_until', nullif(task.paused_until, stored.paused_until)),
        {schema}.not_an_instant('next_run_at', nullif(task.next_run_at, stored.next_run_at))));
    perform {schema}.refuse_control(field, value) from (values {free_texts}) as written (field, value);
end
$$;

-- Refuse a named blackout window that is wrong. Called by the trigger of that table.
create or replace function {schema}.validate_blackout(blackout {schema}.blackout) returns void
language plpgsql
as $$
begin
    perform {schema}.refuse_for({schema}.not_a_name('name', blackout.name));
    perform {schema}.refuse_for(case when blackout.windows is null then 'windows is null, not an array of text' end,
                                'An empty array is a window that never opens.');
    if blackout.timezone is not null then
        perform {schema}.validate_timezone(blackout.timezone);
    end if;
    perform {schema}.refuse_control('name', blackout.name);
    perform {schema}.validate_windows('windows', blackout.windows);
end
$$;

-- Refuse a group that is wrong. Called by the trigger of that table.
create or replace function {schema}.validate_group(task_group {schema}.task_group) returns void
language plpgsql
as $$
begin
    perform {schema}.refuse_for(coalesce(
        {schema}.not_a_name('name', task_group.name),
        case when task_group.max_active < 1 then format('max_active is %s, not at least 1', task_group.max_active) end,
        {schema}.not_one_of('state', task_group.state, 'active', 'paused', 'waiting', 'finished'),
        case when task_group.paused is null then 'paused is null, not true or false' end,
        case when task_group.ordered is null then 'ordered is null, not true or false' end,
        case when task_group.pause_on_failure is null then 'pause_on_failure is null, not true or false' end,
        case
            when task_group.ordered and task_group.max_active > 1
            then format('max_active is %s, but an ordered group has one job at a time: leave max_active out',
                        task_group.max_active)
        end,
        case
            when task_group.rate_limit is not null and {schema}.rate_interval_of(task_group.rate_limit) is null
            then format('rate_limit is %s, not a number of jobs per second, minute or hour such as 10/s, 100/m or 5/h',
                        {schema}.quoted(task_group.rate_limit))
        end,
        {schema}.not_a_short_text('pause_reason', task_group.pause_reason)));
    perform {schema}.refuse_control('name', task_group.name);
end
$$;

-- Refuse a group that waits for one that is not there, or that waits for it.
create or replace function {schema}.validate_order_of_groups(task_group {schema}.task_group) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
    other text;
begin
    if task_group.waits_for is null then
        return;
    end if;
    perform {schema}.refuse_for(
        case when array_ndims(task_group.waits_for) > 1 or cardinality(task_group.waits_for) > 100 then
            format('waits_for has %s names in %s dimensions, not at most 100 in a plain list',
                   cardinality(task_group.waits_for), array_ndims(task_group.waits_for)) end);
    foreach other in array task_group.waits_for loop
        perform {schema}.refuse_for({schema}.not_a_name('a name in waits_for', other));
        perform {schema}.refuse_for(
            case when other <> task_group.name and not {schema}.is_a_group(other) then
                format('waits_for names %s, and no group is named so', {schema}.quoted(other))
                    || coalesce({schema}.similar_group_in_words(other), '') end,
            'A group is named by the column group_name of a periodic task, or by define_group().');
    end loop;
    perform {schema}.refuse_for(
        'No group may wait for itself: ' || {schema}.circle_of('group', task_group.name, task_group.waits_for));
end
$$;
