-- List the beats of this host: a starting beat checks which of them are dead.
select id from {schema}.node where role = 'beat' and hostname = %(hostname)s and id <> %(beat)s
