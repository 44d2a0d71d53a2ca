-- Announce a node, or record that it is still alive.
insert into {schema}.node (
    id, role, hostname, pid, version, tracking, mode, broker_problem, broker_problem_since)
values (
    %(node)s, %(role)s, %(hostname)s, %(pid)s, %(version)s, %(tracking)s, %(mode)s, %(broker_problem)s,
    case when %(broker_problem)s::text is not null then {schema}.now() end)
on conflict (id) do update set
    last_seen_at = {schema}.now(),
    broker_problem = excluded.broker_problem,
    broker_problem_since = case
        when excluded.broker_problem is not null then coalesce(node.broker_problem_since, {schema}.now())
    end
