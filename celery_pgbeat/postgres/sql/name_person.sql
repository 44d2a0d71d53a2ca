-- Name who makes the changes of this transaction, and bound how long they may wait.
--
-- All three settings end with the transaction, because behind a pooler the session belongs to others as well.
select set_config('pgbeat.who', %(who)s, true),
    set_config('lock_timeout', '3s', true),
    set_config('statement_timeout', '10s', true)
