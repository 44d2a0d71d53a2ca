-- Take a worker that has ended off the list.
--
-- A beat signs off by a statement of its own, because the last one takes the declarations with it.
delete from {schema}.node where id = %(node)s
