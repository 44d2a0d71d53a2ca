-- Read the person who acts in this transaction: an empty text, if none is named.
select coalesce(current_setting('pgbeat.who', true), '') as who
