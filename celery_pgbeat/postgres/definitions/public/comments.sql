-- What each table, view, column and function means, for people with a database tool; docs/sql.md is made of it. Those
-- of the columns of periodic_task come from celery_pgbeat/columns.py. The functions here are those that people call;
-- the others have the first sentence of the comment above them (function_comments.py).

-- Only the owner of the schema may comment on it, and another role may own the tables.
do $$
begin
    if pg_has_role((select nspowner from pg_namespace where nspname = {channel}), 'usage') then
        comment on schema {schema} is
            'celery-pgbeat: periodic tasks for Celery. Write the table periodic_task, read the views task, job, status, upcoming and overdue, call functions such as pause() and explain(). Do not use what is called internal.';
    end if;
end
$$;

comment on table {schema}.periodic_task is
    'What to send and when. INSERT, UPDATE and DELETE work as well as the functions. A wrong value is refused with SQLSTATE 22023; if only Python can see that it is wrong, a beat writes the reason into the column problem.';
{column_comments}

comment on table {schema}.task_group is
    'Settings for all periodic tasks of a group, which apply in the whole cluster. One UPDATE pauses or resumes them all. A group needs a row here only for these settings. A wrong value is refused with SQLSTATE 22023.';
comment on column {schema}.task_group.name is 'The group, as in the column group_name of its periodic tasks; up to 200 characters.';
comment on column {schema}.task_group.max_active is
    'At most this number of jobs of the group are sent, queued, running or retrying at a time; the others are buffered and start in order of scheduled_for. NULL: no limit. A lower limit ends no job.';
comment on column {schema}.task_group.paused is
    'The same as the state paused; a write of one sets the other.';
comment on column {schema}.task_group.pause_reason is 'Why it is paused; cleared when it is resumed.';
comment on column {schema}.task_group.ordered is
    'True: its jobs run strictly one at a time, in order of scheduled_for. The next one is sent when the one before is final. An occurrence that is not due yet delays no job.';
comment on column {schema}.task_group.state is
    'active; paused: none of its periodic tasks runs, occurrences while paused are never caught up, and a job that waits in it is skipped when it would be sent, or stays if the group is ordered or has pause_on_failure; waiting: a job waits until the groups in waits_for have nothing to do (beats move a group between active and waiting); finished: it takes no new jobs, its occurrences are skipped, jobs that wait or are under way continue.';
comment on column {schema}.task_group.waits_for is
    'Names of groups: a job gets its turn when nothing is under way, waiting or due in any of them. NULL: no other group. Groups that do not exist, and groups that would wait for each other, are refused.';
comment on column {schema}.task_group.pause_on_failure is
    'True: a job that fails or is lost pauses the group, with the reason, before any other job of it gets its turn; jobs that wait stay. A job that a person gives up with fail_job() pauses nothing.';
comment on column {schema}.task_group.rate_limit is
    'How many of its jobs are sent in a second, a minute or an hour: 10 or 10/s, 100/m, 5/h. They are spread evenly, and its periodic tasks take turns, unless it is ordered. NULL: no limit.';
comment on column {schema}.task_group.rate_interval is 'Internal: the time from one job to the next under rate_limit.';
comment on column {schema}.task_group.next_turn_at is 'Internal: from when on the next job may go under rate_limit.';
comment on column {schema}.task_group.last_served is
    'Internal: the periodic task whose job went last under rate_limit; those after it in the order of names come next.';
comment on column {schema}.task_group.limited is 'Internal: whether its jobs wait for their turn.';

comment on table {schema}.group_failure is
    'Internal: the jobs that have failed in groups with pause_on_failure, until the group is resumed.';
comment on column {schema}.group_failure.group_name is 'Internal: the group of the job.';
comment on column {schema}.group_failure.job is 'Internal: the id of the job.';
comment on column {schema}.group_failure.periodic_task is 'Internal: the periodic task of the job.';
comment on column {schema}.group_failure.scheduled_for is 'Internal: the instant of its occurrence; a retry has it too.';
comment on column {schema}.group_failure.failed_at is 'Internal: when it failed or was given up.';
comment on column {schema}.group_failure.pause_due is 'Internal: whether a beat has yet to pause the group.';
comment on column {schema}.group_failure.retried is 'Internal: whether a person has had it run again by retry_job().';

comment on table {schema}.group_to_check is
    'Internal: the groups in which a job may have its turn now, a row for each time that something has changed in one.';
comment on column {schema}.group_to_check.group_name is 'Internal: the group.';
comment on column {schema}.group_to_check.seen is
    'Internal: whether a beat has seen that what keeps its jobs waiting ends without another row here.';

comment on table {schema}.dependency is
    'Internal: the column after of periodic_task, a row for each name in it; a trigger writes it.';
comment on column {schema}.dependency.upstream is 'Internal: the periodic task that comes first.';
comment on column {schema}.dependency.downstream is 'Internal: the periodic task that names it.';

comment on table {schema}.dependency_to_check is
    'Internal: what beats have to look at, because something has ended or changed before it.';
comment on column {schema}.dependency_to_check.upstream is 'Internal: a periodic task of which something has ended or changed: beats look at all after it.';
comment on column {schema}.dependency_to_check.downstream is 'Internal: a periodic task to look at; else NULL.';
comment on column {schema}.dependency_to_check.tries is 'Internal: how often a beat has found it locked.';

comment on table {schema}.blackout is
    'Blackout windows with a name, for the column blackout of many periodic tasks: window: name. When one changes, the beats plan the periodic tasks that use it again. A wrong value is refused with SQLSTATE 22023.';
comment on column {schema}.blackout.name is 'Unique, up to 200 characters.';
comment on column {schema}.blackout.windows is
    'Windows as in the column blackout of a periodic task, without names of other windows. An empty array: nothing is blacked out.';
comment on column {schema}.blackout.timezone is
    'The IANA zone whose clock counts; NULL: that of the periodic task.';

comment on table {schema}.change is
    'Who changed what: an entry for each change of a definition or a pause, by any client, and for what people did to jobs. The writes of a tick are not recorded. No role may write to it; beats drop entries older than pgbeat_keep_changes.';
comment on column {schema}.change.id is 'The order of the changes of one object; revert() takes it.';
comment on column {schema}.change.at is 'When, by the clock of the database.';
comment on column {schema}.change.who is
    'Who: what the session has set as pgbeat.who, such as the user of an application. Else the app whose code declares the row (code:<app>), the owner of a task for people, what paused_by says, or the role. Only role is proven.';
comment on column {schema}.change.role is 'The role that had logged in (session_user).';
comment on column {schema}.change.kind is 'Of what: periodic_task, group or window (a row of blackout).';
comment on column {schema}.change.name is 'Its name, after a renaming the new one; of a job or a backfill, its periodic task.';
comment on column {schema}.change.action is
    'created, changed, renamed, removed, paused, resumed, next_run_set; finished (a group, or a task for people); of jobs: triggered, retried, resent, cancelled, failed (given up), picked_up, released; backfilled. A cancelled backfill is cancelled too.';
comment on column {schema}.change.revision is 'The revision of the periodic task after it, or when it was removed.';
comment on column {schema}.change.columns is 'The columns that differ, also arguments; NULL for a new or removed row.';
comment on column {schema}.change.before is
    'The old values of the columns that differ, durations in seconds; of a removed row all that are not NULL. Without args, kwargs and options.';
comment on column {schema}.change.after is
    'The new values; of a new row all that are not NULL. Of a job or a backfill, what is known of it.';
comment on column {schema}.change.arguments_before is
    'The old args, kwargs and options, where they differ; <sensitive> for the arguments of a sensitive row.';
comment on column {schema}.change.arguments_after is 'The new args, kwargs and options, in the same way.';
comment on column {schema}.change.job is 'The job, if it is about one.';
comment on column {schema}.change.backfill is 'The backfill, if it is about one.';
comment on column {schema}.change.reason is
    'Why: what the caller gave as reason or note, or what the session has set as pgbeat.reason.';
comment on sequence {schema}.change_id_seq is 'Internal: the ids of changes.';

comment on view {schema}.upcoming is 'When each periodic task is due next; without those that are paused, finished or have a problem.';
comment on column {schema}.upcoming.name is 'The name of the periodic task.';
comment on column {schema}.upcoming.next_run_at is 'When it is due, with jitter and deferral.';
comment on column {schema}.upcoming.planned_for is 'The occurrence behind it, the job''s scheduled_for; NULL when SQL set next_run_at itself.';

comment on view {schema}.task is
    'The periodic tasks with the columns that people look at. Write to the table periodic_task; the view status has the state of each.';
{shown_comments}

comment on view {schema}.status is 'The state of each periodic task.';
comment on column {schema}.status.name is 'The name of the periodic task.';
comment on column {schema}.status.state is
    'In words: the state of its job (running, retrying, queued, to be sent, waiting for its turn, silent), its own state (waiting, due, overdue, paused, problem, to be planned, on demand, finished, decided ahead), or both.';
comment on column {schema}.status.next_run_at is 'When it is due, with jitter and deferral.';
comment on column {schema}.status.last_state is 'The state of its latest job, active or final.';
comment on column {schema}.status.last_scheduled_for is 'The occurrence of that job.';
comment on column {schema}.status.lateness is 'How long its run has been due without a decision; NULL when none is due.';
comment on column {schema}.status.failures is
    'How many of its latest 100 jobs have failed since the last success. Jobs that are lost, revoked, expired or skipped do not count, as for pause_after_failures; last_state shows them.';
comment on column {schema}.status.problem is 'Why it cannot be planned; NULL if it can.';

comment on view {schema}.overdue is
    'What is late by more than 2 x (lease + poll): a run that no beat has decided, a job that is not sent, picked up or given up, a run without max_run_time that blocks the next ones, a pause that no beat has ended, a row that no beat has planned. It is computed from the tables alone, so it is right even when every beat is dead.';
comment on column {schema}.overdue.name is 'The name of the periodic task; it may be in several rows.';
comment on column {schema}.overdue.due_at is 'When it should have happened.';
comment on column {schema}.overdue.late_by is 'How long ago that was.';
comment on column {schema}.overdue.reason is 'The reason, as far as it is known.';
comment on column {schema}.overdue.code is
    'What it is: undecided, marked or lazy (a run that no beat has decided), unplanned, unresumed; of a job: unsent, unstarted, lost_message, silent, forgotten, blocking (it keeps the next runs from starting), decision, work (a task for people).';

comment on table {schema}.alert is
    'The alerts that are raised and not over: one for each periodic task that is overdue by more than pgbeat_alert_after (at most 100 of them at a time), one for each dead beat, and one for each declaration in code that beats refuse (at most 100). Each alert sends a notification on the channel <schema>_alert.';
comment on column {schema}.alert.kind is 'overdue, dead_beat or refused.';
comment on column {schema}.alert.name is 'The periodic task, the id of the beat, or the name in code.';
comment on column {schema}.alert.due_at is 'When it should have happened, when the beat was last seen, or when the declaration was first refused.';
comment on column {schema}.alert.reason is 'The reason, as far as it was known when the alert was raised.';
comment on column {schema}.alert.raised_at is 'When it was raised.';
comment on column {schema}.alert.raised_by is 'The beat that raised it, and wrote it to its log, its signal and its webhook.';

comment on table {schema}.periodic_task_state is 'What workers know of a periodic task, apart from its definition.';
comment on column {schema}.periodic_task_state.name is 'The periodic task.';
comment on column {schema}.periodic_task_state.last_started_at is 'When a job of it last started; kept only if it has a min_gap.';
comment on column {schema}.periodic_task_state.row_created_at is
    'The created_at of the periodic task to which that job belonged: a new row of the same name has no last start.';
comment on column {schema}.periodic_task_state.failures_in_row is
    'How many of its jobs have failed since the last success; kept only if it has pause_after_failures.';
comment on column {schema}.periodic_task_state.failures_from is
    'The failures_from of the periodic task when they were counted; once that is later, the next failure is the first.';
comment on column {schema}.periodic_task_state.last_failed_at is 'When the last of them failed.';
comment on column {schema}.periodic_task_state.last_failed_job is 'The last of them.';
comment on column {schema}.periodic_task_state.pause_due is 'Whether a beat has to pause it because of the failures.';

comment on view {schema}.job is
    'Every submission of a periodic task, active or final; its id is the Celery task id.';
{job_comments}

comment on table {schema}.active_job is 'Internal: the jobs that are not final. Read the view job.';

comment on table {schema}.open_work is
    'Internal: what people may pick up, a row for each job and each of its targets. Call my_work().';
comment on column {schema}.open_work.target is 'Internal: a user or a role; an empty text for anybody.';
comment on column {schema}.open_work.due_by is 'Internal: when it is overdue; infinity for never.';
comment on column {schema}.open_work.scheduled_for is 'Internal: the instant of the occurrence.';
comment on column {schema}.open_work.job is 'Internal: the job.';
comment on column {schema}.open_work.is_new is
    'Internal: whether no beat has sent the signal about the job yet; in one row of each job.';

comment on table {schema}.lost_message is
    'Internal: the jobs whose message the broker has lost, as beats have noticed. The view overdue shows them.';
comment on column {schema}.lost_message.job is 'Internal: the job.';
comment on column {schema}.lost_message.noticed_at is
    'Internal: when a beat noticed it; the note counts until the job goes on or is sent again.';

comment on table {schema}.finished_job is 'Internal: the jobs that are final, partitioned by day. Read the view job.';
comment on table {schema}.finished_job_default is
    'Internal: the partition of finished_job for days that have none of their own.';

comment on table {schema}.node is 'The beats and workers whose last heartbeat is less than a day old.';
comment on column {schema}.node.id is 'Host, boot, process and a random part: never used again.';
comment on column {schema}.node.role is 'beat or worker.';
comment on column {schema}.node.hostname is 'The host it runs on.';
comment on column {schema}.node.pid is 'Its process id there.';
comment on column {schema}.node.version is 'Its version of celery-pgbeat.';
comment on column {schema}.node.started_at is 'When it started.';
comment on column {schema}.node.last_seen_at is 'Its last heartbeat.';
comment on column {schema}.node.mode is
    'Of a beat: sends; shadow (pgbeat_shadow: it records what it would send); waits, while beats in shadow live.';
comment on column {schema}.node.broker_problem is
    'Of a beat: why its broker takes no message, or none for some queues; NULL if there is no problem or nothing to send.';
comment on column {schema}.node.broker_problem_since is 'Since when.';
comment on column {schema}.node.tracking is 'Whether it is a worker that reports the states of jobs.';

comment on table {schema}.stopped_beat is
    'The beats that stopped cleanly within the last day, and the one that stopped last. They have no rows in node any more.';
comment on column {schema}.stopped_beat.id is 'What its id in node was.';
comment on column {schema}.stopped_beat.hostname is 'The host it ran on.';
comment on column {schema}.stopped_beat.stopped_at is 'When it stopped.';

comment on table {schema}.declaration is
    'Internal: the declarations of living beats by hash. Of one app, the declaration that was first seen last is in force.';
comment on column {schema}.declaration.app is 'Internal: the app, as in managed_by of its rows.';
comment on column {schema}.declaration.hash is 'Internal: equal for all beats whose code declares the same.';
comment on column {schema}.declaration.first_seen_at is
    'Internal: when a beat first had it, and later than that of every other declaration known then. It starts again when the declaration comes back after it was dead.';
comment on column {schema}.declaration.last_seen_at is 'Internal: the last heartbeat of a beat with it.';
comment on column {schema}.declaration.listening_since is
    'Internal: since when its beats have sent heartbeats without a break: for them another declaration is dead only by its silence after that.';
comment on column {schema}.declaration.dead_after is 'Internal: the silence after which it counts as dead.';

comment on table {schema}.declaration_in_force is
    'Internal: which declaration of an app is in force. A beat that writes what code declares locks this row meanwhile.';
comment on column {schema}.declaration_in_force.app is 'Internal: the app, as in managed_by of its rows.';
comment on column {schema}.declaration_in_force.hash is 'Internal: the declaration.';
comment on column {schema}.declaration_in_force.revision is 'Internal: how often the declaration in force has changed.';

comment on table {schema}.refused_declaration is
    'What the code of an app declares and its beats refuse, in the declaration that is in force: these entries never run, or run as they were declared before. A row is deleted when a beat starts with corrected code, and when the last beat stops.';
comment on column {schema}.refused_declaration.app is 'The app: what managed_by would be.';
comment on column {schema}.refused_declaration.name is 'The name in the code; cut if it is longer than 200 characters.';
comment on column {schema}.refused_declaration.reason is 'Why it is refused, and the way out.';
comment on column {schema}.refused_declaration.hash is 'The declaration in which it was refused.';
comment on column {schema}.refused_declaration.seen_at is 'When it was first refused for this reason.';

comment on table {schema}.app is
    'The apps whose beats were seen within a day, by the name of the Celery app. One schema serves one app: the one that was first seen first. Beats of another app send nothing while beats of that one live.';
comment on column {schema}.app.name is 'The name of the Celery app; an app without a name, or called __main__, is not listed.';
comment on column {schema}.app.first_seen_at is 'When a beat of it was first seen, and later than that of every other app known then.';
comment on column {schema}.app.last_seen_at is 'The last heartbeat of a beat of it.';
comment on column {schema}.app.listening_since is
    'Since when its beats have sent heartbeats without a break: they take over from another app only after silence since then.';
comment on column {schema}.app.dead_after is 'The silence after which its beats count as dead.';

comment on table {schema}.backfill is
    'The backfills: ranges of occurrences to be run. backfill() makes one, cancel_backfill() ends one; they are kept for the retention.';
comment on column {schema}.backfill.id is 'What backfill() returned.';
comment on column {schema}.backfill.periodic_task is 'The periodic task, by its name.';
comment on column {schema}.backfill.since is 'The first instant of the range; inclusive.';
comment on column {schema}.backfill.until is 'The last instant of the range; inclusive.';
comment on column {schema}.backfill.mode is
    'missing: occurrences that never had a job (a skipped one counts as none). failed: those whose jobs failed, were lost or expired, if no job of them succeeded or is under way. all: every one, again.';
comment on column {schema}.backfill.max_active is 'At most this number of its jobs are under way at once.';
comment on column {schema}.backfill.state is
    'running; finished: every occurrence is decided; cancelled: the occurrences that were not decided then are dropped.';
comment on column {schema}.backfill.reached is 'The last occurrence that is decided; NULL: not begun.';
comment on column {schema}.backfill.next_at is
    'The next occurrence to be decided. In an enabled row it waits until a beat has decided it as an ordinary run.';
comment on column {schema}.backfill.total is 'How many occurrences the range has; NULL: not begun. Of solar events over more than ten years: how many days, until all are decided.';
comment on column {schema}.backfill.submitted is 'How many jobs it has made.';
comment on column {schema}.backfill.skipped is 'How many occurrences needed no job, by its mode.';
comment on column {schema}.backfill.problem is 'Why it could not continue; NULL if a person cancelled it.';
comment on column {schema}.backfill.created_at is 'When it was made.';
comment on column {schema}.backfill.created_by is 'The user of the session that made it.';
comment on column {schema}.backfill.finished_at is 'When the last occurrence was decided, or it was cancelled.';
comment on column {schema}.backfill.marked_by is 'The beat that decides its next occurrences.';
comment on column {schema}.backfill.marked_at is 'Since when; the mark is valid for its lease.';
comment on column {schema}.backfill.mark_lease is 'Internal: how long the mark is valid: the lease of the beat that set it.';

comment on table {schema}.schema_version is 'The version of this schema; one row.';
comment on column {schema}.schema_version.version is 'The last migration that was applied.';
comment on column {schema}.schema_version.min_compatible is 'Packages that know at least this version can work with the schema.';
comment on column {schema}.schema_version.definitions is 'The checksum of the functions and views that were applied last.';

comment on table {schema}.last_author is
    'Internal: what only one transaction at a time may do, and which has done it last.';
comment on column {schema}.last_author.what is 'Internal: the column that is written, or the function.';
comment on column {schema}.last_author.transaction is 'Internal: the id of the transaction.';

comment on function {schema}.now() is 'The clock of the schema: everything that decides about time reads it.';
comment on function {schema}.known_options() is 'The apply_async options that a periodic task may have.';
comment on function {schema}.reserved_headers() is 'The headers that the options of a periodic task may not contain: Celery''s own.';
comment on function {schema}.schedule is
    'Declare a periodic task: insert it, or change the columns that differ; returns the row. An omitted argument becomes the default; enabled and the pause columns, next_run_at and the state stay. An equal definition writes nothing. keep_next_run keeps next_run_at even when the schedule changes. A row that code declares is refused, unless take_over is set: the code then no longer changes it. A managed_by that begins with code: is refused. To change one column use UPDATE.';
comment on function {schema}.unschedule(text) is
    'Remove a periodic task; returns whether there was one. Messages already at the broker still run.';
comment on function {schema}.pause(text, text, timestamptz) is
    'Pause a periodic task, until a time or until it is resumed; returns the row. SQLSTATE 22023 for a time in the past, P0002 for an unknown name.';
comment on function {schema}.resume(text) is
    'Resume a paused periodic task, or one that was decided ahead; returns the row. Occurrences while paused are never caught up. A notice says if it was not paused, and if something else, such as its group, keeps it from running. SQLSTATE P0002 for an unknown name.';
comment on function {schema}.replan(text[], text) is
    'Have beats plan next runs again, after a change of the time zone tables that they use; returns the names of the rows concerned. names: NULL for all; zone: only rows that name this time zone. A next run that the new tables do not change stays, and so does one that SQL has set. A due run is sent as it was planned, or later by the new tables; nothing is lost or sent twice. Restart all beats with the new tables first. SQLSTATE P0002 for an unknown name.';
comment on function {schema}.limit_group(text, int) is
    'Set how many jobs of a group may be under way at a time, NULL for no limit; returns the group.';
comment on function {schema}.define_group(text, int, boolean, text[], boolean, text) is
    'Set the rules of a group, and return it; an omitted argument becomes the default, state and pause_reason stay. The arguments are the columns of task_group. SQLSTATE 22023 for a wrong value.';
comment on function {schema}.finish_group(text) is
    'Finish a group: it takes no new jobs, its occurrences are skipped with the reason finished, and trigger() and backfill() are refused (SQLSTATE 55000) until resume_group() opens it. Jobs that wait or are under way continue. Returns the group. SQLSTATE P0002 for an unknown group.';
comment on function {schema}.pause_group(text, text) is
    'Pause all periodic tasks of a group; returns the group. Messages already at the broker still run. SQLSTATE P0002 for an unknown group.';
comment on function {schema}.resume_group(text, boolean) is
    'Resume a paused group, or open a finished one; returns it. Occurrences while paused are never caught up; jobs that wait continue. With retry, the jobs whose failure has paused the group run again first, as by retry_job(). SQLSTATE P0002 for an unknown group; 55000 with retry if no failed job has paused it.';
comment on function {schema}.revert(text, int, bigint) is
    'Put the definition of a periodic task back to what it was at a revision, or before a change (an id of the table change); returns the row. It is checked as any other definition, and is a change itself. A removed row is made again, with its pause; of a row that is there the pause, the next run and the jobs stay. A sensitive row stays sensitive. Its arguments are not recorded: a row keeps its present ones, and a removed one is refused. SQLSTATE P0002 for an unknown name, 22023 if the changes do not go back so far.';
comment on function {schema}.trigger(text, boolean, jsonb, jsonb) is
    'Start a job now, also of a row that is paused, finished or without a schedule; returns its id. args and kwargs are for this job alone, and replace those of the row; what is omitted is that of the row. A beat sends it after the caller''s commit, once its group has a free slot; next_run_at stays. If a job of the name is not final, the call fails (SQLSTATE 55006), unless overlap is allow or force is given: then the job is sent beside the other one.';
comment on function {schema}.trigger_many(jsonb, boolean) is
    'Start many jobs in one statement, all or none, each as trigger() does; returns the id of each, in their order. jobs is an array of objects with name, and with args and kwargs for that job alone, which replace those of the row; what is omitted or null is that of the row. A row may have several of the jobs if its overlap is allow, or with force. An error names the job by its index, which counts from 0. NULL, which jsonb_agg() returns for no rows, starts none.';
comment on function {schema}.retry_job(uuid, boolean) is
    'Run a job that has failed again. A job in state error runs again itself, under its own id. One that has ended without success is submitted again, as a new manual job of its periodic task. Returns the job that runs now, the name, and whose arguments it has: those of the job, where they are known (also of a manual job, and of a lost one that never started), or those that the periodic task has now. All else is as for trigger(). SQLSTATE P0002 for an unknown id; 55000 if the job is neither final nor in state error, has succeeded, or called another task than its periodic task does now; 55006 as for trigger().';
comment on function {schema}.fail_job(uuid, text) is
    'Give up a job in state error: it ends as failed, with who decided that and why; returns the name of its periodic task. SQLSTATE P0002 for an unknown id; 55000 if the job is in another state.';
comment on function {schema}.cancel_job(uuid, text) is
    'Cancel a job that no worker runs, or one for people: it ends as revoked, with who cancelled it and why; returns the name of its periodic task. If its message is still with the broker, the guard drops it; a worker without the tracker runs it all the same. SQLSTATE P0002 for an unknown id; 55000 if the job is final, waits for a decision, is running, or under such a tracking is being sent at this moment; 55P03 if another transaction changes it; 42501 if the caller may cancel only tasks for people.';
comment on function {schema}.resend_job(uuid) is
    'Have the message of a sent job sent again at once, under the same id, because the broker has lost it; returns the name of its periodic task. If the message is there after all, the guard starts one of the two. It does not count as one of the three times that a beat sends a job again by itself. SQLSTATE P0002 for an unknown id; 55000 if the job is in another state, waits for a later attempt, or has another tracking than full; 55P03 if another transaction changes it.';
comment on function {schema}.my_work(text, text[], int) is
    'List the tasks for people that the owner has (running), then those that the owner may pick up, by name or by targets, the roles of the owner (created): what is due first comes first. At most `most` of them, up to 10000.';
comment on function {schema}.pick_up(uuid, text, text[]) is
    'Pick up a task for people: it is running and with this owner; returns the name of its periodic task. targets are the roles of the owner. SQLSTATE 55006 if another person has it, with the name; 55P03 if another transaction changes it at this moment; 42501 if it is for others; 55000 if it is over, waits for its turn or is none for people; P0002 for an unknown id.';
comment on function {schema}.release(uuid, text) is
    'Give a task for people back: it is created again, and others can pick it up; returns the name of its periodic task. With owner only if it is with that one. SQLSTATE 55006 if it is with another; 55P03 if another transaction changes it at this moment; 55000 if no person has it; P0002 for an unknown id.';
comment on function {schema}.finish(uuid, text, text, text) is
    'End a task for people that a person has, as succeeded or failed; returns the name of its periodic task. The note is recorded in the history. With owner only if it is with that one. SQLSTATE 55006 if it is with another; 55P03 if another transaction changes it at this moment; 55000 if no person has it; P0002 for an unknown id.';
comment on function {schema}.backfill(text, timestamptz, timestamptz, text, int) is
    'Submit the occurrences of a range, both ends included, as jobs of their own: those that are missing, that failed, or all. It works for a paused or finished row too. At most max_active of the jobs are under way at once, and none beside another job of the name unless overlap is allow. Returns the id of the backfill; the beats begin after the caller''s commit. SQLSTATE P0002 for an unknown name.';
comment on function {schema}.backfill(text, date, date, text, int) is
    'The same for whole days of the row''s zone, the last one included; of today, up to now.';
comment on function {schema}.backfill(text, text, text, text, int) is
    'The same for literals without a type: ''2026-05-31'' is that day of the row''s zone, the whole of it, as are today and yesterday; a time without an offset is read on the clocks of that zone.';
comment on function {schema}.cancel_backfill(uuid) is
    'Cancel a backfill: the occurrences that it has not decided yet are dropped, the jobs that it has made still run; returns the row. SQLSTATE 42704 for an unknown id, 55000 if it was over already.';
comment on function {schema}.explain(text) is
    'Return one sentence: why a periodic task is, or is not, running now. Instants are in UTC. SQLSTATE P0002 for an unknown name.';
comment on function {schema}.validate_schedule(text) is
    'Refuse, with SQLSTATE 22023, the text of a schedule that can never work. A beat may still refuse a text that passes, in the column problem.';
comment on function {schema}.validate_timezone(text) is 'Refuse, with SQLSTATE 22023, a text that is no IANA time zone.';
comment on function {schema}.validate_windows(text, text[]) is
    'Refuse, with SQLSTATE 22023, blackout windows that can never work; field is blackout, or windows for those of a name. A beat may still refuse windows that pass, in the column problem.';
comment on function {schema}.make_days(int) is 'Make the history''s partitions of today and the coming days; returns how many, NULL if another session is making them.';
comment on function {schema}.prune(interval) is 'Drop the days of the history that are older than the retention, from 1 day on, and old backfills; returns how many days.';
