-- What checks a value before it is written into a row; internal/validation.sql has the rules.

-- The `apply_async` options that a row may carry.
create or replace function {schema}.known_options() returns text[]
language sql immutable parallel safe
as $$ select array[{known_options}] $$;

-- The headers that a row's options may not contain: Celery's own, because those of a row would replace them (`task`
-- would call another task, `id` make another job), and ours.
create or replace function {schema}.reserved_headers() returns text[]
language sql immutable parallel safe
as $$ select array[{reserved_headers}] $$;

-- Postgres takes more for a zone than an IANA name: abbreviations, offsets, POSIX rules. A name has a slash
-- and no digit, save those listed here; the list of names without a slash is closed, the IANA adds none.
create or replace function {schema}.validate_timezone(zone text) returns void
language plpgsql
as $$
begin
    if upper(zone) = 'UTC' then
        return;
    end if;
    if zone ~ '^[A-Za-z_]+(/[A-Za-z_-]+)+$' and zone !~ '^(posix|right)/'
        or zone ~ '^(Etc|SystemV)/[A-Za-z0-9+-]+$'
        or zone in ('CET', 'CST6CDT', 'Cuba', 'EET', 'EST', 'EST5EDT', 'Egypt', 'Eire', 'Factory', 'GB', 'GB-Eire',
                    'GMT', 'GMT+0', 'GMT-0', 'GMT0', 'Greenwich', 'HST', 'Hongkong', 'Iceland', 'Iran', 'Israel',
                    'Jamaica', 'Japan', 'Kwajalein', 'Libya', 'MET', 'MST', 'MST7MDT', 'NZ', 'NZ-CHAT', 'Navajo',
                    'PRC', 'PST8PDT', 'Poland', 'Portugal', 'ROC', 'ROK', 'Singapore', 'Turkey', 'UCT', 'Universal',
                    'W-SU', 'WET', 'Zulu')
    then
        begin
            perform pg_catalog.now() at time zone zone;
            return;
        exception when invalid_parameter_value then
            null;
        end;
    end if;
    perform {schema}.refuse(zone, 'there is no time zone of that name',
                            'Write an IANA name such as Europe/Berlin, not an offset or an abbreviation.');
end
$$;

-- The text of a schedule, of any kind.
create or replace function {schema}.validate_schedule(schedule text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    perform {schema}.validate_schedule_in(schedule, schedule);
end
$$;

-- Blackout windows, of a row or (`windows`) of a name. Which names there are is left to Python, for they come and go.
create or replace function {schema}.validate_windows(field text, windows text[]) returns void
language plpgsql
as $$
declare
    given text;
    part text;
    body text;
    name text;
    written_out int := 0;
    longest int;
begin
    select max(char_length(element)) into longest from unnest(windows) as element;
    perform {schema}.refuse_for(case
        when array_ndims(windows) > 1 then format('%s has %s dimensions, not 1', field, array_ndims(windows))
        when cardinality(windows) > 20 then
            format('%s has %s elements, more than 20', field, cardinality(windows))
        when array_position(windows, null) is not null then
            format('%s[%s] is NULL, not text', field, array_position(windows, null))
        when longest > 4250 then  -- the longest schedule, and a duration
            format('%s has an element of %s characters, more than 4250', field, longest)
    end);
    foreach given in array windows loop
        continue when ascii({schema}.unpadded(given)) > 126;  -- Python may see a blank there, and so another text
        foreach part in array {schema}.windows_in(given) loop
            body := {schema}.unpadded(part);
            name := {schema}.window_referred_to(body);
            if name = '' then
                perform {schema}.refuse(given, 'there is no blackout window named ''''');
            elsif name is not null and field = 'windows' then
                perform {schema}.refuse(given, 'a named window holds windows, not the names of others');
            elsif name is null and body !~ '[^ -~]' then  -- with tabs and line breaks: left to Python
                written_out := written_out + 1;
                perform {schema}.validate_window(given, body);
            end if;
        end loop;
    end loop;
    if written_out > 20 then
        perform {schema}.refuse(
            array_to_string(windows, '; '), format('there are %s windows, more than 20', written_out));
    end if;
end
$$;
