-- What SQL can see of each kind of schedule; the rules are those of celery_pgbeat/schedules.

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
