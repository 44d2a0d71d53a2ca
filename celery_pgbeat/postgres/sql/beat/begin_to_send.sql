-- Record that this beat sends from now on: it has seen none in shadow.
--
-- Not a part of each heartbeat, because the role of a worker may not write the mode.
update {schema}.node set mode = 'sends' where id = %(beat)s
