-- Read what should have happened and has not, the longest late first, with the reason.
--
-- The reasons of those that are not shown are not computed.
select name, code, due_at, {schema}.microseconds(late_by) as late_by_microseconds, reason from {schema}.overdue
order by due_at, name
limit %(limit)s
