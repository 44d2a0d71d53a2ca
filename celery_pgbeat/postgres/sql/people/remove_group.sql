-- Remove a group that no periodic task names; returns it.
--
-- With it go its settings and its pause. A row that joins at the same moment has joined a group without any. A job of
-- the group that waits gets a slot at the next look.
delete from {schema}.task_group as known
where known.name = %(name)s
    and not exists (
        select from {schema}.periodic_task as member
        where member.group_paused in (true, false) and member.group_name = known.name)
returning {known.group}
