-- Read who acts in this transaction: an empty text, if nobody is named.
select coalesce(current_setting('pgbeat.who', true), '') as who
