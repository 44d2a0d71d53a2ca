-- Take nodes that have ended off the list.
delete from {schema}.node where id = any (%(nodes)s::text[])
