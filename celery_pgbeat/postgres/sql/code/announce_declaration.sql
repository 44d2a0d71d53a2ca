-- Record that a beat with this declaration is alive, and put it in force unless a later one has a living beat.
--
-- Later is what was first seen later. A declaration is dead when no beat has renewed it for its `dead_after`. Only time
-- during which another beat was active counts: for a beat, a later declaration is dead only if the beat itself has been
-- active for as long. A declaration that was dead while others were active, and comes back with a beat that starts,
-- counts as first seen now: a roll-back, or the next roll-forward. A later declaration is always first seen later,
-- whatever the clock does. If no beat is announced at all, only the declaration of this call is alive.
--
-- Of two beats that announce at the same moment one wins. A beat that has read another revision than the one that it
-- has locked changes nothing. Nor does one that finds the row locked by a transaction that is writing what code
-- declares. Both try again with their next heartbeat.
with before as materialized (
    select hash, revision from {schema}.declaration_in_force where app = %(manager)s
),
others as materialized (
    select hash, first_seen_at, last_seen_at, dead_after
    from {schema}.declaration
    where app = %(manager)s and hash <> %(hash)s
),
announced as (
    insert into {schema}.declaration as known (app, hash, first_seen_at, last_seen_at, listening_since, dead_after)
    select %(manager)s, %(hash)s,
        greatest({schema}.now(), (select max(first_seen_at) + interval '1 microsecond' from others)),
        {schema}.now(), {schema}.now(), make_interval(secs => %(dead_after)s)
    on conflict (app, hash) do update
    set first_seen_at = case
            when %(starting)s and known.last_seen_at + known.dead_after < (select max(last_seen_at) from others)
            then excluded.first_seen_at
            else known.first_seen_at
        end,
        last_seen_at = excluded.last_seen_at,
        listening_since = {listening_since},
        dead_after = excluded.dead_after
    returning first_seen_at, listening_since
),
later as materialized (
    select others.hash
    from others cross join announced
    where (others.first_seen_at, others.hash) > (announced.first_seen_at, %(hash)s)
        and {is_alive}
        and exists (select from {schema}.node where role = 'beat')
),
unlocked as materialized (
    select hash, revision
    from {schema}.declaration_in_force
    where app = %(manager)s and hash <> %(hash)s
    for no key update skip locked
),
put_in_force as (
    update {schema}.declaration_in_force as in_force
    set hash = %(hash)s, revision = in_force.revision + 1
    from unlocked
    join before on before.revision = unlocked.revision
    where in_force.app = %(manager)s and not exists (select from later)
    returning in_force.revision
),
first as (
    insert into {schema}.declaration_in_force (app, hash, revision)
    select %(manager)s, %(hash)s, 1
    where not exists (select from before) and not exists (select from later)
    on conflict (app) do nothing
    returning revision
)
select
    coalesce(
        (select revision from put_in_force),
        (select revision from first),
        (select revision from before where hash = %(hash)s)
    ) as revision,
    exists (select from later) as overruled
