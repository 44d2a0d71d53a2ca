-- Look, without a lock or a write, whether there is anything to do, and when the next row will be due.
--
-- The one statement of an idle beat: poll, recover and judge share it. Each branch is one probe of an
-- index. Rows that a live beat has marked do not count, or every beat would spin on them.
-- Jobs are looked at when their `check_at` has passed: what is late then is `unsent` or `lapsed`, the rest is `in_time`.
select * from {schema}.look(%(lease)s, %(lazy_names)s::text[])
