-- Of which kind a schedule is: it is recognised as celery_pgbeat/schedules recognises it.

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
