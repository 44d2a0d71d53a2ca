-- Groups: what a write to `task_group` means, and which jobs of a group may have their turn.
--
-- A job of a group that is `limited` is buffered and waits for its turn, its slot; `grant_slots` gives it one.
-- Whether a job may have its turn is decided in `why_held` and `turns_in`: what grants, what looks whether there is
-- something to grant, and what explains why a job waits call these two. In which order the jobs have their turns is
-- decided in `next_in` (sql/beat/grant_slots.sql). A group that is not limited has no turns: `grant_slots` lets go what
-- still waits in it, unless it is stopped.
--
--   a group is | if                                                      | this means             | until
--   -----------+---------------------------------------------------------+------------------------+------------------
--   limited    | it has a max_active, a rate_limit or a waits_for, or is | its jobs wait for      | a person takes all
--              | ordered (a generated column)                            | their turns            | of these away
--   full       | no slot is free (`free_in`)                             | no job has its turn    | a job ends
--   waiting    | jobs wait in it, and a group of its waits_for is busy   | no job has its turn    | none of these is
--              | (a value of `state`, written by grant_slots)            |                        | busy
--   held       | there is a reason (`why_held`) for which no job has its | no job has its turn    | there is none
--              | turn, whatever is free                                  |                        |
--   paused     | a person has paused it, or a beat after a failure (a    | its rows are not due   | resume_group()
--              | value of `state`, and the column `paused`)              |                        |
--   stopped    | it keeps its jobs (`keeps_jobs`: it is ordered or has   | what waits stays; in   | resume_group()
--              | pause_on_failure), and it is paused or a job has failed | other paused groups it |
--              | (`why_stopped`)                                         | is skipped             |
--   finished   | a person has finished it (a value of `state`)           | it takes no new jobs;  | resume_group()
--              |                                                         | what waits goes on     |
--
-- A row of `group_turn` is a reason to look at a group. One with `held` was left by a beat that has looked: it could
-- not lock the group, has more to grant, or the jobs wait for what ends without another row (a rate limit, other
-- groups). `held_groups_with_room` reads whether a job may have its turn by now.
--
-- Two other words are not about groups: `held_back` is a column of a periodic task, and the `held` that `confirm`
-- returns is a lock. An argument or an alias `known` is the stored row of the group.

-- Whether jobs of a group wait for their turn. In a group that has no row none does.
create or replace function {schema}.is_limited(group_name text) returns boolean
language plpgsql stable
as $$
begin
    return group_name is not null and exists (select from {schema}.task_group where name = group_name and limited);
end
$$;

-- Whether a group is paused, by what is committed. A pause and a row that joins the group at the same moment can miss
-- each other; `sync_group_pauses` repairs that.
create or replace function {schema}.is_paused(group_name text) returns boolean
language sql stable
as $$ select group_name is not null and exists (select from {schema}.task_group where name = group_name and paused) $$;

-- Whether a group takes no new jobs any more.
create or replace function {schema}.is_finished(group_name text) returns boolean
language sql stable
as $$
    select group_name is not null
        and exists (select from {schema}.task_group where name = group_name and state = 'finished')
$$;

-- The time from one job to the next under a rate limit, in Celery's notation: `10` and `10/s`, `100/m`, `0.5/h`. NULL
-- if it is no such text, or a rate that beats cannot keep.
create or replace function {schema}.rate_interval_of(rate_limit text) returns interval
language sql immutable parallel safe
as $$
    select span
    from (
        select make_interval(secs => case found[2] when 'm' then 60 when 'h' then 3600 else 1 end
                                     / nullif(found[1]::float8, 0)) as span
        from regexp_matches(rate_limit, '^ *([0-9]{1,9}(?:[.][0-9]{1,9})?) *(?:/ *([smh]))? *$') as found
    ) as read
    where span > interval '0' and span <= interval '366 days'
$$;

-- From where on the jobs of a group are counted under its rate limit. What was not used is kept for a tenth of a
-- second, in which a beat may not look, and no longer. A next turn that is further in the future than one interval
-- comes from a clock that was set back, and does not count.
create or replace function {schema}.rate_counts_from(known {schema}.task_group) returns timestamptz
language sql stable
as $$
    select greatest(
        case
            when known.next_turn_at <= {schema}.now() + known.rate_interval + interval '1 minute'
                then known.next_turn_at
        end,
        {schema}.now() - greatest(interval '100 milliseconds' - known.rate_interval, interval '0'))
$$;

-- A row of a group that is due before an instant and that no beat has decided yet; NULL if there is none. A row that
-- not every beat may decide (lazy) counts once a beat has marked it.
create or replace function {schema}.due_in_group(group_name text, before timestamptz) returns text
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    select task.name
    from {schema}.periodic_task as task
    where {is_on task} and task.next_run_at <= {schema}.now() and task.group_name = due_in_group.group_name
        and coalesce(task.planned_for, task.next_run_at) < due_in_group.before
        and (not task.lazy or {schema}.is_marked(task.marked_at, task.mark_lease))
    order by task.next_run_at
    limit 1
$$;

-- Whether a group has anything under way, waiting or due.
create or replace function {schema}.is_busy(group_name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return exists (select from {schema}.active_job as job
                   where job.group_name = is_busy.group_name and job.slot is not null)
        or exists (select from {schema}.active_job as job
                   where job.group_name = is_busy.group_name and job.waits_for = 'slot')
        or exists (select from {schema}.active_job as job
                   where job.group_name = is_busy.group_name and job.waits_for = 'predecessor')
        or {schema}.due_in_group(is_busy.group_name, 'infinity') is not null;
end
$$;

-- The first group that a group waits for; NULL if nothing is under way, waiting or due in any of them.
create or replace function {schema}.busy_one_of(groups text[]) returns text
language sql stable
as $$
    select name from unnest(groups) with ordinality as other (name, place)
    where {schema}.is_busy(name)
    order by place
    limit 1
$$;

-- When the first job that waits for its turn in a group was scheduled.
create or replace function {schema}.first_scheduled_in(group_name text) returns timestamptz
language sql stable
as $$
    select scheduled_for from {schema}.active_job as job
    where job.waits_for = 'slot' and job.group_name = first_scheduled_in.group_name
    order by scheduled_for
    limit 1
$$;

-- Whether the pause of a group keeps the jobs that wait for their turn. Those of other paused groups get it, and are
-- skipped when they would be sent, as those of a paused row.
create or replace function {schema}.keeps_jobs(known {schema}.task_group) returns boolean
language sql immutable parallel safe
as $$ select known.ordered or known.pause_on_failure $$;

-- Why a group is stopped until a person resumes it, in words that follow "the group"; NULL if it is not.
create or replace function {schema}.why_stopped(known {schema}.task_group) returns text
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    select case
        when not {schema}.keeps_jobs(known) then null
        when known.paused then 'is paused' || coalesce(' (' || {schema}.escaped(known.pause_reason) || ')', '')
        when known.pause_on_failure then (
            select 'is stopped: job ' || failure.job || ' of ' || {schema}.quoted(failure.periodic_task)
                || ' has failed'
            from {schema}.group_failure as failure
            where failure.group_name = known.name
            order by failure.group_name, failure.job
            limit 1)
    end
$$;

-- Why no job of a group gets its turn now, whatever is free, in words that follow "the group"; NULL if nothing keeps
-- them.
create or replace function {schema}.why_held(known {schema}.task_group) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    other text := {schema}.why_stopped(known);
    first timestamptz;
begin
    if other is not null then
        return other;
    end if;
    if known.waits_for is not null then
        other := {schema}.busy_one_of(known.waits_for);
        if other is not null then
            return 'waits for the group ' || {schema}.quoted(other);
        end if;
    end if;
    if {schema}.rate_counts_from(known) > {schema}.now() then
        return format('may send the next at %s (rate_limit %s)', {schema}.shown({schema}.rate_counts_from(known)),
                      known.rate_limit);
    end if;
    if known.ordered then
        first := {schema}.first_scheduled_in(known.name);
        other := {schema}.due_in_group(known.name, first);
        if other is not null then
            return 'is ordered, and ' || {schema}.quoted(other) || ' is due before';
        end if;
        -- A job that waits for one of its own row, which has ended at this very moment.
        select waiting.periodic_task into other
        from {schema}.active_job as waiting
        where waiting.waits_for = 'predecessor' and waiting.group_name = known.name and waiting.scheduled_for < first
            and not exists (
                select from {schema}.active_job as blocking
                where blocking.periodic_task = waiting.periodic_task
                    and blocking.waits_for is distinct from 'predecessor'
                offset 0)
        order by waiting.scheduled_for
        limit 1;
        if found then
            return 'is ordered, and a job of ' || {schema}.quoted(other) || ' comes before';
        end if;
    end if;
    return null;
end
$$;

-- How many jobs of a group may be under way at a time; NULL: any number.
create or replace function {schema}.most_active(known {schema}.task_group) returns int
language sql immutable parallel safe
as $$ select case when known.ordered then 1 else known.max_active end $$;

-- How many places are free in a group, 0 or less if none is; NULL: any number.
create or replace function {schema}.free_in(known {schema}.task_group) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
    select {schema}.most_active(known) - case
        when {schema}.most_active(known) is null then 0
        else (
            select count(*) from {schema}.active_job as job
            where job.group_name = known.name and job.slot is not null)
    end
$$;

-- How many jobs of a group may have their turn now; NULL: any number.
create or replace function {schema}.turns_in(known {schema}.task_group) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    free constant bigint := {schema}.free_in(known);
    sendable bigint;
begin
    if free <= 0 or {schema}.why_held(known) is not null then
        return 0;
    end if;
    if known.rate_interval is not null then
        sendable := 1 + floor(extract(epoch from {schema}.now() - {schema}.rate_counts_from(known))
                              / extract(epoch from known.rate_interval));
    end if;
    return least(free, sendable);
end
$$;

-- Whether a job waits for its turn in a group.
create or replace function {schema}.has_waiting(group_name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return exists (
        select from {schema}.active_job as job
        where job.waits_for = 'slot' and job.group_name = has_waiting.group_name);
end
$$;

-- The groups in which a job waits that may have its turn, by one probe of the index for each group in which one waits.
-- A group that is not limited any more keeps no job waiting, unless it is stopped.
create or replace function {schema}.groups_with_room() returns setof text
language sql stable rows 10
set search_path = pg_catalog, pg_temp
set jit = off
as $$
    with recursive waited_for as (
        (select group_name from {schema}.active_job where waits_for = 'slot' order by group_name limit 1)
        union all
        select (
            select group_name from {schema}.active_job
            where waits_for = 'slot' and group_name > waited_for.group_name
            order by group_name
            limit 1)
        from waited_for
        where group_name is not null
    )
    select waited_for.group_name
    from waited_for
    left join {schema}.task_group as known on known.name = waited_for.group_name
    where waited_for.group_name is not null
        and (known.name is null or {schema}.turns_in(known) is distinct from 0)
$$;

-- The groups in which a job may have its turn by now, of those in which a beat has seen that it could not. Many may
-- wait for the same other groups, so each of those is looked at once.
create or replace function {schema}.held_groups_with_room() returns setof text
language plpgsql stable rows 10
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return query
    with held as materialized (
        select distinct group_name from {schema}.group_turn where held
    ),
    busy as materialized (
        select other
        from (
            select distinct unnest(known.waits_for) as other
            from held
            join {schema}.task_group as known on known.name = held.group_name
        ) as waited_for
        where {schema}.is_busy(other)
    )
    select held.group_name
    from held
    left join {schema}.task_group as known on known.name = held.group_name
    where known.name is null
        or not coalesce(known.waits_for && array(select other from busy), false)
        and {schema}.turns_in(known) is distinct from 0;
end
$$;

-- When the next job may go in one of the groups whose jobs wait for the time that their rate limit sets.
create or replace function {schema}.next_turn_at() returns timestamptz
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    return (
        select min(known.next_turn_at)
        from {schema}.group_turn as held
        join {schema}.task_group as known on known.name = held.group_name
        where held.held and known.next_turn_at > {schema}.now()
            and known.next_turn_at <= {schema}.now() + known.rate_interval + interval '1 minute');
end
$$;

-- The groups (or, by their column `after`, periodic tasks) by which one would wait for itself, from this one on, in
-- words; NULL if there is no such circle. It looks at each once, those that are waited for first.
create or replace function {schema}.circle_of(what text, name text, waits_for text[]) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    waits_of jsonb := '{}';  -- for each group that was reached, one that waits for it
    reached text[] := waits_for;
    step text := circle_of.name;
    path text;
begin
    select coalesce(jsonb_object_agg(other, circle_of.name), '{}') into waits_of from unnest(reached) as other;
    while cardinality(reached) > 0 and not waits_of ? circle_of.name loop
        with further as (
            select distinct on (other) other, waiting
            from (
                select other, known.name as waiting
                from {schema}.task_group as known
                cross join unnest(known.waits_for) as other
                where what = 'group' and known.name = any (reached)
                union all
                select upstream, downstream
                from {schema}.dependency
                where what = 'periodic task' and downstream = any (reached)
            ) as known
            where not waits_of ? other
            order by other, waiting
        )
        select waits_of || coalesce(jsonb_object_agg(other, waiting), '{}'), array_agg(other)
        into waits_of, reached
        from further;
    end loop;
    if not waits_of ? circle_of.name then
        return null;
    end if;
    path := {schema}.quoted(step);
    loop
        step := waits_of ->> step;
        path := {schema}.quoted(step) || case what when 'group' then ' waits for ' else ' runs after ' end || path;
        exit when step = circle_of.name;
    end loop;
    return path;
end
$$;

-- Have authors of `waits_for`, or of `after`, come one after the other until their transactions end: two at the same
-- time could close a circle that neither sees. They write the same row, which no user but the owner can lock. (Every
-- user of the database could take an advisory lock.) Under REPEATABLE READ the second does not see what the first has
-- committed since it began; it fails with 40001, and may try again. One write for each transaction, however many rows
-- it has. It acts for the owner: nothing else writes that table.
create or replace function {schema}.one_author(what text) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '5s'
as $$
declare
    holder text;
begin
    if exists (
        select from {schema}.last_author as known
        where known.what = one_author.what and known.transaction = pg_current_xact_id_if_assigned())
    then
        return;
    end if;
    -- Mostly it need not wait. Then it has no subtransaction, whose end hides which session has the lock.
    perform from {schema}.last_author as known where known.what = one_author.what for update skip locked;
    if not found then
        begin
            perform from {schema}.last_author as known where known.what = one_author.what for update;
        exception when lock_not_available then
            select format('the session %s of %s (%s)', activity.pid, {schema}.quoted(activity.usename::text),
                          {schema}.quoted(activity.application_name))
            into holder
            from {schema}.last_author as known
            join pg_locks as held on held.locktype = 'transactionid' and held.granted
                and held.transactionid = known.xmax
            join pg_stat_activity as activity on activity.pid = held.pid
            where known.what = one_author.what;
            raise exception using errcode = 'lock_not_available',
                message = format('another transaction has written %s, and has not ended for 5 seconds: %s',
                                 one_author.what, coalesce(holder, 'pg_stat_activity shows which are open')),
                hint = 'Try again when it has ended, or end its session with pg_terminate_backend().';
        end;
    end if;
    update {schema}.last_author as known
    set transaction = pg_current_xact_id()
    where known.what = one_author.what;
end
$$;

revoke execute on function {schema}.one_author(text) from public;

-- Have authors of `waits_for` come one after the other, before they lock a row.
create or replace function {schema}.task_group_to_be_written() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform {schema}.one_author('task_group.waits_for');
    return null;
end
$$;

revoke execute on function {schema}.task_group_to_be_written() from public;

drop trigger if exists task_group_to_be_written on {schema}.task_group;
create trigger task_group_to_be_written
    before insert or update of waits_for on {schema}.task_group
    for each statement execute function {schema}.task_group_to_be_written();

-- Refuse a group that is wrong before it is written. `state` and `paused` say the same: a write of one of them sets
-- the other. Beats move a group between active and waiting; for an author the two are one.
create or replace function {schema}.task_group_written() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if tg_op = 'INSERT' and new.paused and new.state = 'active'
        or tg_op = 'UPDATE' and new.paused and not old.paused and new.state = old.state
    then
        new.state := 'paused';
    elsif tg_op = 'UPDATE' and not new.paused and old.paused and new.state = old.state then
        new.state := 'active';
    end if;
    if new.waits_for = '{}' then
        new.waits_for := null;
    end if;
    if new.waits_for is null and new.state = 'waiting' then
        new.state := 'active';
    end if;
    new.paused := case when new.paused is not null then coalesce(new.state = 'paused', false) end;
    if not new.paused then
        new.pause_reason := null;
    end if;
    perform {schema}.validate_group(new);
    if tg_op = 'INSERT' or new.waits_for is distinct from old.waits_for or new.name <> old.name then
        perform {schema}.validate_order_of_groups(new);
    end if;
    new.rate_interval := {schema}.rate_interval_of(new.rate_limit);
    return new;
end
$$;

drop trigger if exists task_group_written on {schema}.task_group;
create trigger task_group_written
    before insert
        or update of name, max_active, paused, pause_reason, ordered, state, waits_for, pause_on_failure, rate_limit
    on {schema}.task_group
    for each row execute function {schema}.task_group_written();

-- Set whether the rows of a group are paused; returns how many changed. In name order, as everywhere where many rows
-- are written. The trigger of each row decides what its resumption means. A beat leaves out the rows that another
-- transaction has locked (pause_failed_groups): `sync_group_pauses` does those later, and no beat waits for an author.
create or replace function {schema}.regroup_members(name text, paused boolean) returns int
language plpgsql
as $$
declare
    names text[];
    changed int;
begin
    if current_setting('celery.leaves_locked_rows', true) = 'on' then
        names := array(
            select member.name from {schema}.periodic_task as member
            where member.group_paused = not regroup_members.paused and member.group_name = regroup_members.name
            order by member.name
            for no key update skip locked);
    else
        names := array(
            select member.name from {schema}.periodic_task as member
            where member.group_paused = not regroup_members.paused and member.group_name = regroup_members.name
            order by member.name
            for no key update);
    end if;
    update {schema}.periodic_task as member
    set group_paused = regroup_members.paused
    where member.name = any (names) and member.group_paused = not regroup_members.paused
        and member.group_name = regroup_members.name;
    get diagnostics changed = row_count;
    return changed;
end
$$;

-- A write to a group reaches its rows at once, and a beat looks whether a job has its turn now (also if none is seen to
-- wait here: it may begin to at this moment). When a group is resumed,
-- or does not pause itself any more, its failures are forgotten.
create or replace function {schema}.task_group_changed() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    waiting text;
begin
    if tg_op = 'UPDATE' and old.state in ('active', 'waiting') and new.state in ('active', 'waiting')
        and old.state <> new.state and to_jsonb(old) - 'state' = to_jsonb(new) - 'state'
    then
        return null;  -- A beat says so, and knows it.
    end if;
    if tg_op <> 'INSERT' and (tg_op = 'DELETE' or new.name <> old.name) then
        select name into waiting from {schema}.task_group
        where waits_for is not null and waits_for @> array[old.name] order by name limit 1;
        if found then
            raise exception using errcode = 'object_in_use', table = 'task_group',
                message = format('The group %s waits for the group %s.',
                                 {schema}.quoted(waiting), {schema}.quoted(old.name)),
                hint = format('Take %s out of its column waits_for first.', {schema}.quoted(old.name));
        elsif tg_op = 'UPDATE' and {schema}.has_waiting(old.name) then
            raise exception using errcode = 'object_in_use', table = 'task_group',
                message = format('Jobs wait in the group %s: a job knows its group by the name.',
                                 {schema}.quoted(old.name)),
                hint = 'Rename the group when none waits.';
        end if;
        perform {schema}.regroup_members(old.name, false);
        delete from {schema}.group_failure where group_name = old.name;
    elsif tg_op = 'UPDATE' and (old.paused and not new.paused or old.pause_on_failure and not new.pause_on_failure) then
        delete from {schema}.group_failure where group_name = old.name;
    end if;
    if tg_op <> 'DELETE' then
        perform {schema}.regroup_members(new.name, new.paused);
    end if;
    insert into {schema}.group_turn (group_name)
    select distinct name from unnest(array[old.name, new.name]) as name
    where name is not null;
    perform pg_notify({channel}, '');
    return null;
end
$$;

revoke execute on function {schema}.task_group_changed() from public;

drop trigger if exists task_group_changed on {schema}.task_group;
create trigger task_group_changed
    after insert or delete
        or update of name, max_active, paused, pause_reason, ordered, state, waits_for, pause_on_failure, rate_limit
    on {schema}.task_group
    for each row execute function {schema}.task_group_changed();

-- Whether a periodic task names a group, or a row of task_group does.
create or replace function {schema}.is_a_group(name text) returns boolean
language sql stable
as $$
    select exists (select from {schema}.task_group as known where known.name = is_a_group.name)
        or exists (select from {schema}.periodic_task as member
                   where member.group_paused in (true, false) and member.group_name = is_a_group.name)
$$;

-- The group that may have been meant, as the end of a sentence; NULL if none is similar.
create or replace function {schema}.similar_group_in_words(name text) returns text
language sql stable
as $$
    select '. Did you mean ' || {schema}.quoted(meant) || '?'
    from unnest({schema}.similar_names(similar_group_in_words.name)) as meant
    where {schema}.is_a_group(meant)
    order by meant
    limit 1
$$;

-- Fail if there is no such group.
create or replace function {schema}.refuse_group_of_nobody(name text) returns void
language plpgsql
as $$
begin
    if refuse_group_of_nobody.name is null then
        raise exception using errcode = 'invalid_parameter_value', message = 'name is null, not the name of a group';
    elsif not {schema}.is_a_group(refuse_group_of_nobody.name) then
        raise exception using errcode = 'no_data_found', table = 'task_group',
            message = format('No group is named %s', {schema}.quoted(refuse_group_of_nobody.name))
                || coalesce({schema}.similar_group_in_words(refuse_group_of_nobody.name), '.'),
            hint = 'A group is named by the column group_name of a periodic task, or by define_group().';
    end if;
end
$$;

-- A job that begins to wait for its turn, or for other tasks, may have waited long enough at once.
create or replace function {schema}.active_job_waits() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
    if new.waits_for = 'slot' then
        insert into {schema}.group_turn (group_name) values (new.group_name);
    else
        insert into {schema}.dependency_turn (downstream) values (new.periodic_task);
    end if;
    return null;
end
$$;

drop trigger if exists active_job_waits on {schema}.active_job;
create trigger active_job_waits
    after insert or update of waits_for on {schema}.active_job
    for each row when (new.waits_for in ('slot', 'upstream'))
    execute function {schema}.active_job_waits();

-- Fail if a group takes no new jobs.
create or replace function {schema}.refuse_finished_group(group_name text) returns void
language plpgsql
as $$
begin
    if {schema}.is_finished(refuse_finished_group.group_name) then
        raise exception using errcode = 'object_not_in_prerequisite_state', table = 'task_group',
            message = format('The group %s is finished: it takes no new jobs.',
                             {schema}.quoted(refuse_finished_group.group_name)),
            hint = 'Open it first, with resume_group().';
    end if;
end
$$;

-- Run the jobs again that have paused a group, each for the instant that it was scheduled for, so that it comes before
-- those that wait; returns how many. For resume_group(): a role that may not write a job may have just these
-- run again. One that runs again already, or has succeeded after all (start_lost), is left alone.
create or replace function {schema}.retry_failures_of(group_name text) returns int
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    failure record;
    retried uuid;
    made uuid[] := '{}';
begin
    for failure in
        select job, periodic_task, scheduled_for from {schema}.group_failure as known
        where known.group_name = retry_failures_of.group_name and not known.retried
            and not exists (select from {schema}.active_job as other where other.id = known.job)
            and not exists (
                select from {schema}.finished_job as other where other.id = known.job and other.state = 'succeeded')
        order by scheduled_for, failed_at, job
    loop
        -- What only waits in the group is behind this one, and does not keep it from running.
        select job into retried
        from {schema}.retry_job(failure.job, force => not exists (
            select from {schema}.active_job as other
            where other.periodic_task = failure.periodic_task and other.waits_for is null
                and other.id <> all (made))) as job;
        update {schema}.active_job as job set scheduled_for = failure.scheduled_for where job.id = retried;
        made := made || retried;
    end loop;
    return cardinality(made);
end
$$;

revoke execute on function {schema}.retry_failures_of(text) from public;
