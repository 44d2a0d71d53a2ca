-- Bound how long the statements of this transaction may wait for locks, and run.
--
-- The settings end with the transaction, because behind a pooler the session belongs to others as well.
select set_config('lock_timeout', '3s', true), set_config('statement_timeout', '10s', true)
