-- What everything public means, for whoever looks at it with a database tool.

comment on table {schema}.periodic_task is
    'What to send and when. INSERT, UPDATE and DELETE work as well as the functions; what is wrong is refused with SQLSTATE 22023, and what only Python can see ends in the column problem.';
comment on column {schema}.periodic_task.name is 'Unique, up to 200 characters.';
comment on column {schema}.periodic_task.task is 'The Celery task, by the name that workers know.';
comment on column {schema}.periodic_task.args is 'Positional arguments: a JSON array; with kwargs at most 64 kB.';
comment on column {schema}.periodic_task.kwargs is 'Keyword arguments: a JSON object.';
comment on column {schema}.periodic_task.queue is 'The queue; NULL: where the app routes the task.';
comment on column {schema}.periodic_task.priority is 'The broker''s priority, 0 to 255.';
comment on column {schema}.periodic_task.options is
    'Every other apply_async option, as a JSON object: expires, time_limit, headers, exchange, … The keys that are allowed are in known_options().';
comment on column {schema}.periodic_task.sensitive is
    'Its arguments are masked wherever messages, events, logs and commands show them, and the errors of its jobs say only the exception''s class. The table and the message itself hold the arguments as they are.';
comment on column {schema}.periodic_task.schedule is
    'When: cron (*/5 * * * *), an interval (every 30s), ISO 8601 (R/PT1H, 2026-12-09), a calendar event (Mon..Fri 09:00), an RRULE. NULL: no times of its own, it is started by trigger(), or once when next_run_at is set.';
comment on column {schema}.periodic_task.timezone is
    'The IANA name of the zone whose wall clock counts. NULL until the first beat that plans the row writes its app''s zone there; from then on a change of the setting moves nothing.';
comment on column {schema}.periodic_task.anchor is
    'Where the grid of intervals starts; NULL: start_at, else the instant the schedule was set.';
comment on column {schema}.periodic_task.dst is
    'Where the wall clock leaps: default, skip (nothing in a gap), once (every reading at most once), all (both passes of an overlap).';
comment on column {schema}.periodic_task.start_at is 'No occurrence before this instant; inclusive.';
comment on column {schema}.periodic_task.end_at is 'No occurrence after this instant; inclusive.';
comment on column {schema}.periodic_task.max_runs is 'Stops after so many submitted scheduled runs.';
comment on column {schema}.periodic_task.run_count is 'How many scheduled runs were submitted.';
comment on column {schema}.periodic_task.jitter is
    'Spread: each run is up to so much later than its occurrence, by the same amount whoever asks, and never past the next occurrence.';
comment on column {schema}.periodic_task.overlap is
    'While a job of this name is not final: skip records the occurrence as skipped; buffer_one and buffer_all keep one, or all (up to 1,000), until their turn; cancel_other and terminate_other end the one that runs and send the latest after it; allow submits beside it.';
comment on column {schema}.periodic_task.catchup is
    'Which of the occurrences that nobody decided in time go out: none, latest, earliest, all (under overlap = skip one after the other).';
comment on column {schema}.periodic_task.catchup_window is 'How late an occurrence may still go out; NULL: no limit. In all spans a month has 30 days and a year 360, as Postgres compares them.';
comment on column {schema}.periodic_task.catchup_limit is
    'At most so many occurrences, the newest, go out under catchup = all; NULL: 1,000.';
comment on column {schema}.periodic_task.min_gap is
    'A job that would start sooner than this after the last start is dropped at the worker: skipped, min_gap. Never a retry, a rerun or a manual run.';
comment on column {schema}.periodic_task.max_run_time is
    'Timebox: the soft time limit; the hard one is twice that, at most 60 s more. Silent 30 s after it: lost.';
comment on column {schema}.periodic_task.blackout is
    'When nothing may start: windows, each a schedule that opens it and an ISO duration (cron: 0 0 * * sat P2D), with ; between several; window: name refers to the table blackout. A recurrence rule stands alone in its element.';
comment on column {schema}.periodic_task.blackout_action is
    'What becomes of an occurrence within a window: defer (it runs when the window closes) or skip.';
comment on column {schema}.periodic_task.group_name is
    'The group with which it is paused and limited, see the table task_group; a group that has no row there has no limit.';
comment on column {schema}.periodic_task.submitter is 'Who wants it; free text.';
comment on column {schema}.periodic_task.subject is 'What it is for; free text.';
comment on column {schema}.periodic_task.pause_after_failures is
    'Pauses after so many failed jobs in a row; NULL: never. A success, a resume and a new name begin the count anew; backfill does not count.';
comment on column {schema}.periodic_task.enabled is 'False: paused.';
comment on column {schema}.periodic_task.pause_reason is 'Why it is paused.';
comment on column {schema}.periodic_task.paused_by is 'Who paused it.';
comment on column {schema}.periodic_task.paused_until is 'When it resumes by itself; NULL: never.';
comment on column {schema}.periodic_task.on_lost is
    'When a worker dies: give_up (the job is lost: at most once) or rerun (it runs again: at least once).';
comment on column {schema}.periodic_task.tracking is
    'full: workers report every state. result: the result backend is asked when a job stands in the way of its next occurrence. send: our knowledge ends when the broker has the message; overlap is not promised.';
comment on column {schema}.periodic_task.next_run_at is
    'When it is due. NULL: to be planned while planned_revision differs from revision, otherwise never again. SQL may set it: it is honoured; now() runs it at once.';
comment on column {schema}.periodic_task.planned_for is
    'The nominal instant behind next_run_at, the job''s scheduled_for; NULL when SQL set next_run_at itself.';
comment on column {schema}.periodic_task.last_run_at is
    'The last occurrence decided. Where it lies ahead, because the clock of the database did, a resume, a change of the times or a next_run_at set by SQL lowers it to now.';
comment on column {schema}.periodic_task.marked_by is 'The beat that is deciding this row''s due occurrence.';
comment on column {schema}.periodic_task.marked_at is 'Since when; the mark lapses after the lease.';
comment on column {schema}.periodic_task.managed_by is 'Who may change the definition: sql, api, code:<app>, …';
comment on column {schema}.periodic_task.problem is
    'Why this row cannot be planned; NULL when well. Changing the definition gives it another chance.';
comment on column {schema}.periodic_task.revision is 'Goes up with every change of the definition.';
comment on column {schema}.periodic_task.planned_revision is 'The revision that next_run_at was planned for.';
comment on column {schema}.periodic_task.created_at is 'When the row was made.';
comment on column {schema}.periodic_task.updated_at is 'When anybody but a beat last changed the row.';
comment on column {schema}.periodic_task.schedule_set_at is
    'Internal: when the text of the schedule was set (of one that code has changed: its last run), the anchor of last resort.';
comment on column {schema}.periodic_task.planned_from is 'Internal: occurrences count from here on.';
comment on column {schema}.periodic_task.judged_from is
    'Internal: code has changed the times since. The newest occurrence after this instant and up to planned_from, if there is one, is due at once.';
comment on column {schema}.periodic_task.taken_over is 'Internal: the mark was taken over from another beat.';
comment on column {schema}.periodic_task.mark_lease is 'Internal: how long the beat that marked the row is believed.';
comment on column {schema}.periodic_task.pickup_deadline is
    'Internal: how long a job may wait for a worker before it is sent again.';
comment on column {schema}.periodic_task.lazy is 'Internal: only beats whose code declares this row may mark it.';
comment on column {schema}.periodic_task.declared is 'Internal: what code last declared, and whether its row has been withdrawn.';
comment on column {schema}.periodic_task.declared_timezone is
    'Internal: the zone as its author gave it; NULL where a beat filled in the app''s.';
comment on column {schema}.periodic_task.windows_used is 'Internal: the named windows in blackout.';
comment on column {schema}.periodic_task.windows_revision is 'Internal: how often one of the named windows was changed.';
comment on column {schema}.periodic_task.decided_anew_at is
    'Internal: when last_run_at was last lowered to now; the ids of jobs begin with it.';
comment on column {schema}.periodic_task.failures_from is
    'Internal: what failed under another instant than this one is no longer counted for pause_after_failures.';

comment on column {schema}.periodic_task.group_paused is
    'Whether its group is paused: one UPDATE of task_group sets it for all rows of the group.';

comment on table {schema}.task_group is
    'What holds for all periodic tasks of a group. One UPDATE pauses or resumes them all; max_active limits their jobs in the whole cluster. A group needs a row only for that.';
comment on column {schema}.task_group.name is 'The group, as in the column group_name of its periodic tasks; up to 200 characters.';
comment on column {schema}.task_group.max_active is
    'At most so many jobs of the group are under way at a time (sent, queued, running or retrying); the others are buffered and take their turn by scheduled_for. NULL: no limit. A lower limit ends no job.';
comment on column {schema}.task_group.paused is
    'True: none of its periodic tasks runs, and what waits for a place is skipped when its turn comes. Time while paused is never caught up.';
comment on column {schema}.task_group.pause_reason is 'Why it is paused; gone when it is resumed.';

comment on table {schema}.blackout is
    'Blackout windows with a name, for the column blackout of many periodic tasks: window: name. A change plans those that use it anew; what is wrong is refused with SQLSTATE 22023.';
comment on column {schema}.blackout.name is 'Unique, up to 200 characters.';
comment on column {schema}.blackout.windows is
    'Windows as in the column blackout of a periodic task, but no names of others. An empty array: nothing is blacked out.';
comment on column {schema}.blackout.timezone is
    'The IANA name of the zone whose wall clock counts; NULL: that of the periodic task.';

comment on view {schema}.upcoming is 'When each periodic task is due next; those that are paused, finished or in trouble are not in it.';
comment on column {schema}.upcoming.name is 'The name of the periodic task.';
comment on column {schema}.upcoming.next_run_at is 'When it is due, with jitter and deferral.';
comment on column {schema}.upcoming.planned_for is 'The nominal instant behind it, the job''s scheduled_for; NULL when SQL set next_run_at itself.';

comment on view {schema}.status is 'How each periodic task stands.';
comment on column {schema}.status.name is 'The name of the periodic task.';
comment on column {schema}.status.state is
    'In words: what its job does (running, retrying, queued, to be sent, waiting for its turn, silent), what it waits for itself (waiting, due, overdue, paused, problem, to be planned, on demand, finished, decided ahead), or both.';
comment on column {schema}.status.next_run_at is 'When it is due, with jitter and deferral.';
comment on column {schema}.status.last_state is 'The state of its latest job, active or final.';
comment on column {schema}.status.last_scheduled_for is 'The nominal instant of that job.';
comment on column {schema}.status.lateness is 'For how long its run has been due and not decided; NULL when none is due.';
comment on column {schema}.status.failures is
    'How many of its jobs have failed since one last succeeded, among its latest 100.';
comment on column {schema}.status.problem is 'Why it cannot be planned; NULL when well.';

comment on view {schema}.overdue is
    'What should have happened and has not, by more than 2 x (lease + poll): a run that no beat has decided, a job that nobody sends, picks up or gives up, a run without max_run_time in the way of the next ones, a pause or a plan that no beat has ended. Told by the tables alone, so it is right when every beat is dead.';
comment on column {schema}.overdue.name is 'The name of the periodic task; it may be in several rows.';
comment on column {schema}.overdue.due_at is 'When it should have happened.';
comment on column {schema}.overdue.late_by is 'How long ago that was.';
comment on column {schema}.overdue.reason is 'What is known about why.';

comment on table {schema}.alert is
    'The alerts that are raised and not over: one for each periodic task that is overdue by more than pgbeat_alert_after (at most 100 of them at a time) and for each beat that is dead. Who listens on the channel <schema>_alert is woken by each.';
comment on column {schema}.alert.kind is 'overdue or dead_beat.';
comment on column {schema}.alert.name is 'The periodic task, or the id of the beat.';
comment on column {schema}.alert.due_at is 'Since when: when it should have happened, or when the beat was last seen.';
comment on column {schema}.alert.reason is 'What was known about why when it was raised.';
comment on column {schema}.alert.raised_at is 'When it was raised.';
comment on column {schema}.alert.raised_by is 'The beat that raised it, and told its log, its signal and its webhook.';

comment on table {schema}.periodic_task_state is 'What workers know of a periodic task, apart from its definition.';
comment on column {schema}.periodic_task_state.name is 'The periodic task.';
comment on column {schema}.periodic_task_state.last_started_at is 'When a job of it last started, kept where it has a min_gap.';
comment on column {schema}.periodic_task_state.row_created_at is
    'The created_at of the periodic task of which that was a job: a row made anew under the old name has no last start.';
comment on column {schema}.periodic_task_state.failures_in_row is
    'How many of its jobs have failed since one last succeeded, kept where it has pause_after_failures.';
comment on column {schema}.periodic_task_state.failures_from is
    'The failures_from of the periodic task for which they were counted; where that has moved on, the next failure is the first.';
comment on column {schema}.periodic_task_state.last_failed_at is 'When the last of them failed.';
comment on column {schema}.periodic_task_state.last_failed_job is 'The last of them.';
comment on column {schema}.periodic_task_state.pause_due is 'Whether a beat has to pause it, for so many have failed.';

comment on view {schema}.job is
    'Every submission of a periodic task, active or final; its id is the Celery task id.';
comment on column {schema}.job.id is 'The Celery task id.';
comment on column {schema}.job.periodic_task is 'The name of the periodic task.';
comment on column {schema}.job.scheduled_for is 'The nominal instant of the occurrence.';
comment on column {schema}.job.last_scheduled_for is 'The end of the range, where several occurrences were skipped together.';
comment on column {schema}.job.occurrences is 'How many occurrences the row stands for.';
comment on column {schema}.job.origin is 'schedule, catchup, backfill or manual.';
comment on column {schema}.job.state is
    'pending, sent, running, retrying, buffered; final: succeeded, failed, revoked, expired, lost, skipped, untracked (sent, where tracking is send).';
comment on column {schema}.job.reason is
    'Why it was skipped: overlap, blackout, too_late, paused, deleted, limit, min_gap, superseded, not_allowed, not_sent.';
comment on column {schema}.job.blocked_by is 'The job that was in the way.';
comment on column {schema}.job.task is 'The Celery task.';
comment on column {schema}.job.queue is 'The queue it was sent to; NULL: where the app routes the task.';
comment on column {schema}.job.created_at is 'When it was decided.';
comment on column {schema}.job.sent_at is 'When the broker was known to have taken the message.';
comment on column {schema}.job.started_at is 'When it first started.';
comment on column {schema}.job.finished_at is 'When it became final.';
comment on column {schema}.job.attempt is 'How many retries came before this attempt.';
comment on column {schema}.job.sends is 'How often the message was handed to the broker.';
comment on column {schema}.job.beat is 'The beat that sent it.';
comment on column {schema}.job.worker is 'The worker that started it.';
comment on column {schema}.job.error is 'What went wrong.';
comment on column {schema}.job.busy_until is
    'Until when it counts as under way without a sign of life; past it the job is sent again, run again or lost.';

comment on table {schema}.active_job is 'Internal: the jobs that are not final. Read the view job.';
comment on table {schema}.finished_job is 'Internal: the jobs that are final, partitioned by day. Read the view job.';

comment on table {schema}.node is 'The beats and workers that have been heard of within a day.';
comment on column {schema}.node.id is 'Host, boot, process and a random part: never used again.';
comment on column {schema}.node.role is 'beat or worker.';
comment on column {schema}.node.hostname is 'The host it runs on.';
comment on column {schema}.node.pid is 'Its process id there.';
comment on column {schema}.node.version is 'Its version of celery-pgbeat.';
comment on column {schema}.node.started_at is 'When it started.';
comment on column {schema}.node.last_seen_at is 'Its last sign of life.';
comment on column {schema}.node.tracking is 'A worker: whether it reports the states of jobs.';

comment on table {schema}.declaration is
    'Internal: what the code of living beats declares, by its hash; the one of an app that was first seen last is in force.';
comment on column {schema}.declaration.app is 'Who declares it: the managed_by of the rows.';
comment on column {schema}.declaration.hash is 'What beats have in common whose code declares the same.';
comment on column {schema}.declaration.first_seen_at is
    'When a beat first came with it, later than with any other known then; seen anew when it comes back after it was gone.';
comment on column {schema}.declaration.last_seen_at is 'The last sign of life of a beat with it.';
comment on column {schema}.declaration.listening_since is
    'Since when its beats have been heard without a break: only for so long may they hold silence against others.';
comment on column {schema}.declaration.dead_after is 'After how much silence it counts as gone.';

comment on table {schema}.declaration_in_force is
    'Internal: which declaration of an app is in force. Who writes what code declares holds this row meanwhile.';
comment on column {schema}.declaration_in_force.app is 'Who declares it: the managed_by of the rows.';
comment on column {schema}.declaration_in_force.hash is 'The declaration.';
comment on column {schema}.declaration_in_force.revision is 'How often another one has come into force.';

comment on table {schema}.backfill is
    'The backfills: ranges of occurrences that somebody has asked for. backfill() makes one, cancel_backfill() ends one; they are kept for the retention.';
comment on column {schema}.backfill.id is 'What backfill() returned.';
comment on column {schema}.backfill.periodic_task is 'The periodic task, by its name.';
comment on column {schema}.backfill.since is 'The first instant of the range; inclusive.';
comment on column {schema}.backfill.until is 'The last instant of the range; inclusive.';
comment on column {schema}.backfill.mode is
    'missing: occurrences that never had a job (skipped is none). failed: those whose jobs failed, were lost or expired, and of which none succeeded or is under way. all: every one, again.';
comment on column {schema}.backfill.max_active is 'At most so many of its jobs are under way at once.';
comment on column {schema}.backfill.state is
    'running; finished: every occurrence is decided; cancelled: what was not decided then is dropped.';
comment on column {schema}.backfill.reached is 'Up to where it is decided; NULL: not begun.';
comment on column {schema}.backfill.next_at is
    'The next occurrence to be decided; of an enabled row it waits until the ordinary way has decided it.';
comment on column {schema}.backfill.total is 'How many occurrences the range has; NULL: not begun. Of solar events over more than ten years: how many days, until all are decided.';
comment on column {schema}.backfill.submitted is 'How many jobs it has made.';
comment on column {schema}.backfill.skipped is 'How many occurrences needed none, by its mode.';
comment on column {schema}.backfill.problem is 'Why it could not go on, where it was not cancelled by a person.';
comment on column {schema}.backfill.created_at is 'When it was asked for.';
comment on column {schema}.backfill.created_by is 'By whom: the user of the session.';
comment on column {schema}.backfill.finished_at is 'When the last occurrence was decided, or it was cancelled.';
comment on column {schema}.backfill.marked_by is 'The beat that decides its next occurrences.';
comment on column {schema}.backfill.marked_at is 'Since when; the mark lapses after the lease.';
comment on column {schema}.backfill.mark_lease is 'Internal: how long the beat that marked it is believed.';

comment on table {schema}.schema_version is 'The version of this schema; one row.';
comment on column {schema}.schema_version.version is 'The last migration that was applied.';
comment on column {schema}.schema_version.min_compatible is 'Packages that know at least this version may work with the schema.';
comment on column {schema}.schema_version.definitions is 'The checksum of the functions and views that were applied last.';

comment on function {schema}.now() is 'The one clock: everything that decides about time asks it.';
comment on function {schema}.known_options() is 'The apply_async options that a periodic task may carry.';
comment on function {schema}.reserved_headers() is 'The headers that the options of a periodic task may not hold: Celery''s own.';
comment on function {schema}.schedule(
    text, text, text, jsonb, jsonb, text, int, jsonb, boolean, text, timestamptz, text, timestamptz, timestamptz, int,
    interval, text, text, interval, int, interval, interval, text[], text, text, text, text,
    int, text, text, text, boolean) is
    'Declare a periodic task: insert it, or change what differs; returns the row. What is omitted becomes the default, except enabled and the pause columns, next_run_at and the state. An equal definition writes nothing. keep_next_run keeps next_run_at even when the schedule changes. To change one column use UPDATE.';
comment on function {schema}.unschedule(text) is
    'Remove a periodic task; returns whether there was one. Messages already at the broker still run.';
comment on function {schema}.pause(text, text, timestamptz) is
    'Pause a periodic task, until a time or until somebody resumes it; returns the row. SQLSTATE P0002 of an unknown name.';
comment on function {schema}.resume(text) is
    'Resume a paused periodic task, or one that was decided ahead; returns the row. Paused time is never caught up. SQLSTATE P0002 of an unknown name.';
comment on function {schema}.limit_group(text, int) is
    'Set how many jobs of a group may be under way at a time, NULL for no limit; returns the group.';
comment on function {schema}.pause_group(text, text) is
    'Pause all periodic tasks of a group; returns the group. What the broker has, runs. SQLSTATE P0002 of an unknown group.';
comment on function {schema}.resume_group(text) is
    'Resume a paused group; returns it. Time while paused is never caught up. SQLSTATE P0002 of an unknown group.';
comment on function {schema}.trigger(text, boolean) is
    'Start a job now, of a paused, finished or schedule-less row too; returns its id. It reaches the broker after the caller''s commit, and when its group has a place for it, and never moves next_run_at. A job of the name that is not final refuses it (SQLSTATE 55006), unless overlap is allow or force is given, which sends beside it.';
comment on function {schema}.backfill(text, timestamptz, timestamptz, text, int) is
    'Submit the occurrences of a range, both ends included, as jobs of their own: those that are missing, that failed, or all. A paused or finished row is filled too. At most max_active of the jobs are under way at once, and unless overlap is allow none beside another job of the name. Returns the id of the backfill; the beats begin after the caller''s commit. SQLSTATE P0002 of an unknown name.';
comment on function {schema}.cancel_backfill(uuid) is
    'Cancel a backfill: what it has not decided yet is dropped, the jobs that it has made go on; returns the row. SQLSTATE 42704 of an unknown id, 55000 if it was over already.';
comment on function {schema}.explain(text) is
    'Say in one sentence why a periodic task is, or is not, running now. Instants are in UTC. SQLSTATE P0002 of an unknown name.';
comment on function {schema}.validate_schedule(text) is
    'Refuse, with SQLSTATE 22023, the text of a schedule that can never work. What passes may still be refused by a beat, in the column problem.';
comment on function {schema}.validate_timezone(text) is 'Refuse, with SQLSTATE 22023, what is no IANA time zone.';
comment on function {schema}.validate_windows(text, text[]) is
    'Refuse, with SQLSTATE 22023, blackout windows that can never work; field is blackout, or windows for those of a name. What passes may still be refused by a beat, in the column problem.';
comment on function {schema}.make_days(int) is 'Make the history''s partitions of today and the coming days; returns how many, null where another session makes them at this moment.';
comment on function {schema}.prune(interval) is 'Drop the days of the history that are older than the retention, and old backfills; returns how many days.';
