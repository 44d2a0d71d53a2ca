-- List the beats of this host: a starting beat looks which of them are dead.
select id from {schema}.node where role = 'beat' and hostname = %(hostname)s and id <> %(beat)s
