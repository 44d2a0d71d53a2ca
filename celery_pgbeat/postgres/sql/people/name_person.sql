-- Name the person who acts in this transaction, and why, for the table of changes; returns who was named before.
with former as materialized (
    select coalesce(current_setting('pgbeat.who', true), '') as who,
        coalesce(current_setting('pgbeat.reason', true), '') as reason
)
select former.who as former_who, former.reason as former_reason,
    case when former.who is not null then set_config('pgbeat.who', coalesce(%(who)s::text, ''), true) end as who,
    case when former.reason is not null then set_config('pgbeat.reason', coalesce(%(reason)s::text, ''), true) end
        as reason
from former
