-- Announce a node, or record that it is still alive.
insert into {schema}.node (id, role, hostname, pid, version, tracking, mode)
values (%(node)s, %(role)s, %(hostname)s, %(pid)s, %(version)s, %(tracking)s, %(mode)s)
on conflict (id) do update set last_seen_at = {schema}.now()
