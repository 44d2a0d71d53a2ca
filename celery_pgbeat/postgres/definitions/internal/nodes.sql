-- Who is alive, and since when: in words for people.

-- An instant for people.
create or replace function {schema}.shown(instant timestamptz) returns text
language sql stable parallel safe
as $$ select to_char(instant at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"') $$;

-- How long after its time something may be decided and still count as on time: 2 x (lease + poll). The poll is in no
-- row; it matters only to a beat that missed a notification.
create or replace function {schema}.patience(lease interval) returns interval
language sql immutable parallel safe
as $$ select float8 '2' * (coalesce(lease, interval '15 seconds') + interval '1 second') $$;

-- The silence after which a node counts as dead: `pgbeat_dead_after`, as beats write it with each heartbeat.
create or replace function {schema}.dead_after() returns interval
language sql stable parallel safe
as $$ select coalesce(max(dead_after), interval '30 seconds') from {schema}.app $$;

-- Whether a node that was last seen then counts as alive. An instant in the future is from before the clock was set
-- back.
create or replace function {schema}.is_recent(seen_at timestamptz) returns boolean
language sql stable parallel safe
as $$ select seen_at between {schema}.now() - {schema}.dead_after() and {schema}.now() + {schema}.dead_after() $$;

-- A node's id in short: its host and process.
create or replace function {schema}.node_shown(id text) returns text
language sql immutable parallel safe
as $$
    select case
        when id like '%:%:%:%:%' then split_part(id, ':', 1) || ' (process ' || split_part(id, ':', 3) || ')'
        else {schema}.quoted(id)
    end
$$;

-- When a node was last seen, as the end of a sentence.
create or replace function {schema}.last_seen(id text) returns text
language sql stable
as $$
    select coalesce(
        (
            select 'last seen at ' || {schema}.shown(last_seen_at) from {schema}.node as node
            where node.id = last_seen.id
        ),
        'of which no heartbeat is known')
$$;

-- What the heartbeats of the nodes show: since when no beat was seen, and no worker that reports to us (NULL while one
-- lives), and when one was last seen or stopped. While the database was down, none could be seen. With a host only what
-- is of that host counts.
create or replace function {schema}.nodes_in_words(host text default null)
returns table (no_beat text, beat_seen text, no_tracker text)
language sql stable rows 1
set search_path = pg_catalog, pg_temp
as $$
    select
        'no beat' || coalesce(' of the host ' || {schema}.quoted(host), '') || case
            when beat_lives then null
            when beat_at is null and stopped_at is null then ' is running: none has ever been started'
            when beat_at is null or beat_at <= stopped_at
            then ' is running: the last one was stopped at ' || {schema}.shown(stopped_at)
            else ' has been seen since ' || {schema}.shown(beat_at)
        end || case
            when {schema}.is_recent(pg_postmaster_start_time())
            then ' (the database has been up since ' || {schema}.shown(pg_postmaster_start_time()) || ' only)'
            else ''
        end,
        'a beat was seen at ' || {schema}.shown(beat_at),
        case
            when tracker_lives then null
            when tracker_at is null then 'no worker with our tracker is running, so it is not known whether it runs'
            else 'no worker with our tracker has been seen since ' || {schema}.shown(tracker_at)
        end
    from (
        select
            max(last_seen_at) filter (where role = 'beat') as beat_at,
            bool_or({schema}.is_recent(last_seen_at)) filter (where role = 'beat') as beat_lives,
            max(last_seen_at) filter (where role = 'worker' and tracking) as tracker_at,
            bool_or({schema}.is_recent(last_seen_at)) filter (where role = 'worker' and tracking) as tracker_lives
        from {schema}.node
        where role = 'worker' or hostname = coalesce(host, hostname)
    ) as nodes
    cross join (
        select max(stopped_at) as stopped_at from {schema}.stopped_beat where hostname = coalesce(host, hostname)
    ) as stopped
$$;

-- Which beat has marked a row or a job, and whether the mark still counts; NULL if there is none.
create or replace function {schema}.mark_in_words(
    marked_by text, marked_at timestamptz, mark_lease interval
) returns text
language sql stable
as $$
    select 'the beat ' || {schema}.node_shown(marked_by) || ', ' || {schema}.last_seen(marked_by)
        || ', marked it at ' || {schema}.shown(marked_at)
        || case
            when {schema}.is_marked(marked_at, lease) then ''
            else ', and that mark lapsed at ' || {schema}.shown(marked_at + lease)
        end
    from coalesce(mark_lease, interval '15 seconds') as lease
    where marked_at is not null
$$;

-- What a living beat knows of its broker, the one that has known it longest; NULL if the brokers of all are well.
create or replace function {schema}.broker_in_words() returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select 'the beat ' || {schema}.node_shown(id) || ' says of its broker since '
        || {schema}.shown(broker_problem_since) || ': ' || {schema}.escaped(broker_problem)
    from {schema}.node
    where role = 'beat' and broker_problem is not null and {schema}.is_recent(last_seen_at)
    order by broker_problem_since, id
    limit 1
$$;

-- Why a periodic task that is due has not been decided, as far as its row and the living beats show.
create or replace function {schema}.why_undecided(
    task {schema}.periodic_task, no_beat text, beat_seen text
) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    select case
        when task.marked_at is not null then {schema}.mark_in_words(task.marked_by, task.marked_at, task.mark_lease)
        when no_beat is not null then null
        when task.next_run_at >= {schema}.now() - {schema}.patience(task.mark_lease)
            then 'a beat takes it within a moment'
        when task.lazy then 'only a beat whose code declares it may take it, and none does'
        else coalesce(
            {schema}.broker_in_words(),
            beat_seen || ', but none takes it: they may be behind with their work, or another transaction locks '
                || 'the row')
    end
$$;
