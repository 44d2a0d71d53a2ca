-- The jobs whose message the broker has lost, as beats have noticed. May run before the new code.

create table {schema}.lost_message (
    job uuid constraint lost_message_pkey primary key,
    noticed_at timestamptz not null default {schema}.now()
);
