-- Blackout windows.

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
