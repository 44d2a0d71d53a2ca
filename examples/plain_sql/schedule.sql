-- Periodic tasks are rows: any client may write them, and every beat acts on them within a second.

-- Every two seconds. The other columns have their defaults: overlap skip, catchup latest, enabled.
insert into pgbeat.periodic_task (name, task, schedule, kwargs)
values ('poll-inbox', 'shop.poll_inbox', 'every 2s', '{"box": "orders"}');

-- Four kinds of schedules: cron in a time zone, systemd's calendar events, ISO 8601, once.
insert into pgbeat.periodic_task (name, task, schedule, timezone, args) values
    ('nightly-report',  'shop.report', '0 3 * * *',            'Europe/Berlin',    '["long"]'),
    ('weekday-report',  'shop.report', 'Mon..Fri 09:00',       'America/New_York', '[]'),
    ('hourly-report',   'shop.report', 'R/2026-01-01T00:00Z/PT1H', null,           '[]'),
    ('new-year-report', 'shop.report', '2099-01-01 00:00',     'Europe/Berlin',    '["yearly"]');

-- An upsert, for migrations and deployments. If the definition is equal, nothing is written.
select name, schedule
from pgbeat.schedule('month-end', task => 'shop.report', schedule => '0 18 L * *', timezone => 'Europe/Berlin');

-- Beats plan a changed row anew. A pause can have a reason and an end.
update pgbeat.periodic_task set schedule = '30 3 * * *' where name = 'nightly-report';
select name, paused_until is not null as has_an_end
from pgbeat.pause('weekday-report', reason => 'holidays', until => now() + interval '2 weeks');

-- One run now. The next scheduled run does not change.
select pgbeat.trigger('month-end') is not null as triggered;
