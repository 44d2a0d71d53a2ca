-- The columns of a row that a person writes, and whole rows. See internal/refusals.sql.

-- Why a value is none of those that its column knows; NULL where it is one.
create or replace function {schema}.not_one_of(field text, value text, variadic known text[]) returns text
language sql stable parallel safe
as $$
    select case
        when (value = any (known)) is not true then format(
            '%s is %s, not one of %s', field, coalesce({schema}.quoted(value), 'null'), array_to_string(known, ', '))
    end
$$;

-- Why a duration is out of its column's range; NULL where it is not. In days, for to Postgres a year has 360 of
-- them.
create or replace function {schema}.not_a_duration(
    field text, duration interval, may_be_nothing boolean, longest_days int
) returns text
language sql stable parallel safe
as $$
    select case
        when may_be_nothing and duration < interval '0' then
            format('%s is %s; it must be at least 0', field, duration)
        when not may_be_nothing and duration <= interval '0' then
            format('%s is %s; it must be more than 0', field, duration)
        when duration > longest_days * interval '1 day' then
            format('%s is %s; it must be at most %s days', field, duration, longest_days)
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
