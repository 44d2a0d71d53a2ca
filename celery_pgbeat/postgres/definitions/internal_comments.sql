-- What each internal function and column is for, and what calls it. `\df+ pgbeat.*` shows them among those that people
-- call, so each comment begins with `Internal: `; docs/sql.md leaves them out. Other internal comments: the tables are
-- in comments.sql, the columns of periodic_task in celery_pgbeat/columns.py.

-- Spans and texts.
comment on function {schema}.microseconds is
    'Internal: returns a span as a whole number of microseconds; statements of beats, workers and the Python API that return a span call it.';
comment on function {schema}.escaped is
    'Internal: returns a text with its control characters and invisible characters escaped; quoted() and the functions that explain() and the view overdue call use it.';
comment on function {schema}.quoted is
    'Internal: returns a text in quotes and on one line, as Python''s repr does; the functions that write errors and sentences call it.';
comment on function {schema}.unpadded is
    'Internal: returns a text without the blanks around it; the functions that read schedules and blackout windows call it.';
comment on function {schema}.schedule_prefixes is
    'Internal: returns what may stand before the colon of a schedule; validate_schedule_in() and own_zone() call it.';
comment on function {schema}.prefix_of is
    'Internal: returns what is before the first colon of a schedule or window, in small letters; is_recurrence_set() and window_referred_to() call it.';
comment on function {schema}.shown is
    'Internal: returns an instant as text, in UTC; the functions and views that write sentences call it.';
comment on function {schema}.ended is
    'Internal: returns a sentence with its full stop, unless it is a question; explain() calls it.';

-- Tasks for people.
comment on function {schema}.active_job_for_people is
    'Internal: writes what a new job for people has in place of what a beat sends; a trigger of active_job.';
comment on function {schema}.ready_state is
    'Internal: returns the state of a job that waits for nothing any more; release_of() and grant_slots() call it.';
comment on function {schema}.ready_busy_until is
    'Internal: returns the deadline of such a job; release_of() and grant_slots() call it.';
comment on function {schema}.ready_check_at is
    'Internal: returns when a beat looks at such a job; release_of() and grant_slots() call it.';
comment on function {schema}.work_changed is
    'Internal: keeps open_work equal to the jobs that may be picked up, and notifies; the triggers of active_job call it.';
comment on function {schema}.validate_person is
    'Internal: refuses what is no id, owner or list of roles; the functions for people call it.';
comment on function {schema}.refuse_work is
    'Internal: raises why a person cannot do this with a task for people; the functions for people call it.';
comment on function {schema}.refuse_work_in_change is
    'Internal: raises that another transaction changes a task for people; the functions for people call it.';
comment on function {schema}.cancel_work is 'Internal: cancels a task for people; cancel_job() calls it.';
comment on function {schema}.cancel_unstarted is 'Internal: cancels a job that no worker runs; cancel_job() calls it.';
comment on function {schema}.cancelled_in_words is
    'Internal: returns who has cancelled a job and why; record_cancelled() calls it.';
comment on function {schema}.record_cancelled is
    'Internal: records a cancelled job in the history and in the table of changes; cancel_work() and cancel_unstarted() call it.';
comment on function {schema}.refuse_cancel is 'Internal: raises why a job cannot be cancelled; cancel_job() calls it.';
comment on function {schema}.refuse_resend is 'Internal: raises why a job is not sent again; resend_job() calls it.';
comment on function {schema}.work_in_words is
    'Internal: returns which person has a job for people, and until when it is to be done; job_in_words() calls it.';
comment on function {schema}.not_names is
    'Internal: returns why a list is none of users or roles; wrong_column() and validate_person() call it.';
comment on function {schema}.not_of_its_kind is
    'Internal: returns which column contradicts the kind of a row; wrong_column() calls it.';
comment on function {schema}.lost_message_in_words is
    'Internal: returns that the broker has lost the message of a job; explain() and the view overdue call it.';
comment on table {schema}.lost_message is
    'Internal: the jobs whose message the broker has lost, as beats have noticed. The view overdue shows them.';
comment on column {schema}.lost_message.job is 'Internal: the job.';
comment on column {schema}.lost_message.noticed_at is
    'Internal: when a beat noticed it; the note counts until the job goes on or is sent again.';
comment on table {schema}.open_work is
    'Internal: what people may pick up, a row for each job and each of its targets. Call my_work().';
comment on column {schema}.open_work.target is 'Internal: a user or a role; an empty text for anybody.';
comment on column {schema}.open_work.due_by is 'Internal: when it is overdue; infinity for never.';
comment on column {schema}.open_work.scheduled_for is 'Internal: the instant of the occurrence.';
comment on column {schema}.open_work.job is 'Internal: the job.';
comment on column {schema}.open_work.is_new is
    'Internal: whether no beat has sent the signal about the job yet; in one row of each job.';

-- Decisions about failed jobs.
comment on function {schema}.asks is
    'Internal: returns whether a failure of a job waits for a decision; the statements that end jobs call it.';
comment on function {schema}.ask is
    'Internal: lets a job that has failed wait for a decision; the statements that end jobs call it.';
comment on function {schema}.run_again is
    'Internal: lets a job that waits for a decision run again; retry_job() calls it.';

-- Validation, called by the triggers of the tables.
comment on function {schema}.refuse is
    'Internal: raises SQLSTATE 22023 with the value, the reason and the way out; the functions that validate schedules, time zones and windows call it.';
comment on function {schema}.refuse_control is
    'Internal: raises SQLSTATE 22023 if a text has a control character; the functions that validate a row call it.';
comment on function {schema}.refuse_route is
    'Internal: raises SQLSTATE 22023 if a queue or exchange has a name that brokers or Celery keep for themselves; validate_periodic_task() and validate_options() call it.';
comment on function {schema}.validate_schedule_in is
    'Internal: refuses a schedule that can never work, and shows the whole text that has it; validate_schedule(), validate_window() and validate_periodic_task() call it.';
comment on function {schema}.kind_of is
    'Internal: returns which kind of schedule a text is, NULL for none; validate_schedule_in() calls it.';
comment on function {schema}.is_recurrence_set is
    'Internal: returns whether a text is an iCalendar recurrence set; validate_schedule_in() and windows_in() call it.';
comment on function {schema}.validate_cron is
    'Internal: refuses a cron line that can never work; validate_schedule_in() calls it.';
comment on function {schema}.validate_cron_field is
    'Internal: refuses a field of a cron line that can never work; validate_cron() calls it.';
comment on function {schema}.validate_dates is
    'Internal: refuses days of the month that none of the months has; the functions that validate cron lines, calendar events and moments call it.';
comment on function {schema}.validate_number is
    'Internal: refuses a number that is out of the range of its field; the functions that validate cron fields, calendar events and moments call it.';
comment on function {schema}.validate_interval is
    'Internal: refuses an interval such as every 5m that can never work; validate_schedule_in() calls it.';
comment on function {schema}.validate_duration is
    'Internal: refuses a text that is no ISO 8601 duration, or none longer than 0; the functions that validate intervals, ISO 8601 schedules and windows call it.';
comment on function {schema}.validate_iso is
    'Internal: refuses an ISO 8601 repeating interval that can never work; validate_schedule_in() calls it.';
comment on function {schema}.validate_moment is
    'Internal: refuses a date, or a date and a time, that does not exist; validate_schedule_in() and validate_iso() call it.';
comment on function {schema}.validate_calendar is
    'Internal: refuses a systemd calendar event that can never work; validate_schedule_in() calls it.';
comment on function {schema}.validate_rrule is
    'Internal: refuses an iCalendar recurrence set that can never work; validate_schedule_in() calls it.';
comment on function {schema}.windows_in is
    'Internal: splits a text at ; into its blackout windows; validate_windows() and windows_used_by() call it.';
comment on function {schema}.window_referred_to is
    'Internal: returns the name in window: name, NULL for a window that is written out; validate_windows() and windows_used_by() call it.';
comment on function {schema}.validate_window is
    'Internal: refuses a blackout window that can never work; validate_windows() calls it.';
comment on function {schema}.is_date_time is
    'Internal: returns whether a text is a date, or a date and a time, in ISO 8601; validate_options() calls it.';
comment on function {schema}.wrong_arguments is
    'Internal: returns why args and kwargs are of a wrong kind, too large or nested too deeply, NULL if they are not; validate_arguments() and trigger_many() call it.';
comment on function {schema}.validate_arguments is
    'Internal: refuses args and kwargs that are wrong; validate_periodic_task() and trigger() call it.';
comment on function {schema}.validate_options is
    'Internal: refuses an option that a periodic task cannot set, or a value of the wrong kind; validate_periodic_task() calls it.';
comment on function {schema}.not_plain_json is
    'Internal: returns why a JSON value is refused, NULL if it is not; validate_periodic_task() calls it.';
comment on function {schema}.not_one_of is
    'Internal: returns why a value is none of those that its column allows, NULL if it is one; wrong_column() calls it.';
comment on function {schema}.not_a_span is
    'Internal: returns why a span is out of the range of its column, NULL if it is not; wrong_column() calls it.';
comment on function {schema}.not_a_short_text is
    'Internal: returns why a text is too long for its column, NULL if it is not; the functions that validate a row call it.';
comment on function {schema}.not_a_priority is
    'Internal: returns why a number is no priority, NULL if it is one; schedule() and validate_periodic_task() call it.';
comment on function {schema}.not_an_instant is
    'Internal: returns why an instant is out of range, NULL if it is not; wrong_column() and validate_state() call it.';
comment on function {schema}.not_a_name is
    'Internal: returns why a text is no name of 1 to 200 characters, NULL if it is one; the functions that validate a row call it.';
comment on function {schema}.wrong_column is
    'Internal: returns why a column of a periodic task is wrong, NULL if none is; validate_periodic_task() calls it.';
comment on function {schema}.shown_arguments is
    'Internal: returns arguments for an error, hidden if the row is sensitive; validate_arguments() calls it.';
comment on function {schema}.validate_periodic_task is
    'Internal: refuses a definition of a periodic task that can never work; periodic_task_written() calls it.';
comment on function {schema}.validate_state is
    'Internal: refuses wrong values of the columns outside the definition, such as pause_reason; periodic_task_written() calls it.';
comment on function {schema}.validate_blackout is
    'Internal: refuses a wrong row of the table blackout; blackout_written() calls it.';
comment on function {schema}.validate_group is
    'Internal: refuses a wrong row of the table task_group; task_group_written() calls it.';
comment on function {schema}.validate_order_of_groups is
    'Internal: refuses a group that waits for one that is not there, or for itself; task_group_written() calls it.';
comment on function {schema}.circle_of is
    'Internal: returns in words the groups by which a group would wait for itself; validate_order_of_groups() calls it.';
comment on function {schema}.rate_interval_of is
    'Internal: returns the time from one job to the next under a rate_limit, NULL if it is none; the trigger of task_group calls it.';

-- The functions of triggers.
comment on function {schema}.periodic_task_written is
    'Internal: the row trigger of periodic_task; validates a write, takes the mark off and decides what a beat has to plan again.';
comment on function {schema}.blackout_written is
    'Internal: the trigger before a write to blackout; validates it, and refuses to remove or rename a window that is in use.';
comment on function {schema}.replan_users_of_window is
    'Internal: the trigger after a write to blackout; has the beats plan again the periodic tasks that use the window.';
comment on function {schema}.task_group_written is
    'Internal: the trigger before a write to task_group; validates it, and lets state and paused say the same.';
comment on function {schema}.task_group_changed is
    'Internal: the trigger after a write to task_group; pauses or resumes the rows of the group, forgets its failures when it is resumed, and wakes the beats.';
comment on function {schema}.active_job_gone is
    'Internal: the trigger after a DELETE from active_job; records a failure in a group with pause_on_failure, releases the next job that waits, and wakes the beats.';
comment on function {schema}.windows_used_by is
    'Internal: returns the named windows that a blackout refers to; periodic_task_written() calls it.';
comment on function {schema}.last_run_before_change is
    'Internal: returns the instant after which occurrences count when code has changed the times of a row; periodic_task_written() calls it.';
comment on function {schema}.regroup_members is
    'Internal: pauses or resumes the rows of a group, and returns how many; task_group_changed() calls it.';

-- Statements of beats and workers that are functions, so that Postgres keeps their plans.
comment on function {schema}.look is
    'Internal: returns what there is to do, without a lock or a write; a beat calls it in each turn.';
comment on function {schema}.mark is
    'Internal: marks periodic tasks that are due for the beat that calls it, and submits some at once. A call by hand delays them by the lease.';
comment on function {schema}.submit_free is
    'Internal: submits the occurrences that no other job delays; the beat that has marked their rows calls it.';
comment on function {schema}.submit is
    'Internal: submits the occurrences that submit_free leaves, by the overlap policy; the beat that has marked their rows calls it.';
comment on function {schema}.submit_backfill is
    'Internal: submits one step of a backfill; the beat that has marked the backfill calls it.';
comment on function {schema}.confirm is
    'Internal: records that the broker has the messages of jobs; the beat that has sent them calls it.';
comment on function {schema}.release_buffered is
    'Internal: releases the buffered jobs that no other job delays any more, and returns how many; beats and active_job_gone() call it.';
comment on function {schema}.release_of is
    'Internal: releases the first buffered job of each of these periodic tasks, and returns how many; release_buffered() calls it.';
comment on function {schema}.released is
    'Internal: returns what a buffered job becomes when it is released; release_of() calls it.';
comment on function {schema}.waited_for is
    'Internal: returns the periodic tasks that have a buffered job; release_buffered() calls it.';
comment on function {schema}.grant_slots is
    'Internal: gives the free slots of groups to jobs that wait for one, and returns how many; beats call it.';
comment on function {schema}.sync_group_pauses is
    'Internal: pauses or resumes rows that joined a group while it was paused or resumed, and returns them; beats call it with each heartbeat.';
comment on function {schema}.start is
    'Internal: starts a job if this copy of its message may start it, and returns whether it has; a worker calls it before the task.';
comment on function {schema}.start_spaced is
    'Internal: starts a job with a min_gap, or records that it is skipped; a worker calls it before the task.';
comment on function {schema}.finish_many is
    'Internal: finishes jobs, and returns those whose rows were locked; a worker calls it.';
comment on function {schema}.end_unstarted_many is
    'Internal: ends jobs whose messages a worker dropped, and returns those whose rows were locked; a worker calls it.';

-- Parts of statements.
comment on function {schema}.is_marked is
    'Internal: returns whether a mark is still valid; statements of beats and the functions that write sentences call it.';
comment on function {schema}.new_job is
    'Internal: returns a new row of active_job; trigger(), trigger_many() and the statements that submit call it.';
comment on function {schema}.pickup_within is
    'Internal: returns how long the message of an occurrence may wait for a worker; mark() calls it.';
comment on function {schema}.jobs_asked_for is
    'Internal: returns the jobs of a call of trigger_many(), each with the definition of its row; trigger_many() calls it.';
comment on function {schema}.archived is
    'Internal: returns the row of finished_job for a job that has ended; all statements that end a job call it.';
comment on function {schema}.lost is
    'Internal: returns the row of finished_job for a job that is given up as lost; the statements judge and submit of beats call it.';
comment on function {schema}.restart_data_of is
    'Internal: returns what a lost job that never started needs to start after all; lost() calls it.';
comment on function {schema}.count_end is
    'Internal: counts the end of a job for pause_after_failures, and returns whether a pause is due; the statements that finish a job call it.';
comment on function {schema}.pause_is_due is
    'Internal: returns whether pause_after_failures jobs have failed in a row, so that a beat has to pause the periodic task; count_end() and statements of beats call it.';
comment on function {schema}.is_limited is
    'Internal: returns whether jobs of a group wait for their turn; the functions and statements that make or release jobs call it.';
comment on function {schema}.pause_failed_groups is
    'Internal: pauses the groups in which a job has failed, and returns each with the reason; beats call it.';
comment on function {schema}.task_group_to_be_written is
    'Internal: the trigger before a statement that may write waits_for; lets its writers come one after the other.';
comment on function {schema}.is_finished is
    'Internal: returns whether a group takes no new jobs; submit and refuse_finished_group() call it.';
comment on function {schema}.refuse_finished_group is
    'Internal: raises SQLSTATE 55000 if a group takes no new jobs; trigger() and backfill() call it.';
comment on function {schema}.rate_counts_from is
    'Internal: returns from where on the jobs of a group are counted under its rate_limit; turns_in() and grant_slots() call it.';
comment on function {schema}.due_in_group is
    'Internal: returns a row of a group that is due and undecided; is_busy() and why_held() call it.';
comment on function {schema}.is_busy is
    'Internal: returns whether a group has anything under way, waiting or due; busy_one_of() calls it.';
comment on function {schema}.busy_one_of is
    'Internal: returns the first of these groups that is busy; why_held() and grant_slots() call it.';
comment on function {schema}.first_scheduled_in is
    'Internal: returns when the first job that waits in a group was scheduled; why_held() calls it.';
comment on function {schema}.keeps_jobs is
    'Internal: returns whether the pause of a group keeps the jobs that wait in it; why_held() and recover call it.';
comment on function {schema}.why_held is
    'Internal: returns in words why no job of a group gets its turn now, NULL if nothing keeps them; turns_in() and explain call it.';
comment on function {schema}.most_active is
    'Internal: returns how many jobs of a group may be under way at a time; turns_in() and grant_slots() call it.';
comment on function {schema}.turns_in is
    'Internal: returns how many jobs of a group may have their turn now, NULL for any number; groups_with_room() and grant_slots() call it.';
comment on function {schema}.next_in is
    'Internal: locks and returns the jobs of a group that have their turn next; grant_slots() calls it.';
comment on function {schema}.held_groups_with_room is
    'Internal: returns the groups of group_turn whose held jobs may have their turn by now; look() and grant_slots() call it.';
comment on function {schema}.has_waiting is
    'Internal: returns whether a job waits for its turn in a group; grant_slots() and triggers call it.';
comment on function {schema}.free_in is
    'Internal: returns how many places are free in a group; turns_in() and grant_slots() call it.';
comment on function {schema}.why_stopped is
    'Internal: returns in words why a group is stopped until a person resumes it; why_held() and grant_slots() call it.';
comment on function {schema}.active_job_waits is
    'Internal: the trigger for a job that begins to wait for its turn; has a beat look at the group.';
comment on function {schema}.next_turn_at is
    'Internal: returns when the next job may go that waits for a rate_limit; look() calls it.';
comment on function {schema}.is_paused is
    'Internal: returns whether a group is paused; periodic_task_written() and sync_group_pauses() call it.';
comment on function {schema}.groups_with_room is
    'Internal: returns the groups in which a job waits that may have its turn; recheck_groups, doctor and the view overdue call it.';
comment on function {schema}.windows_of is
    'Internal: returns the named windows of these names; statements of beats that plan a row call it.';
comment on function {schema}.undecided_from is
    'Internal: returns the occurrence from which on the schedule of a row still decides, NULL for none; the functions and statements of backfills call it.';
comment on function {schema}.room_of is
    'Internal: returns how many jobs a backfill may submit now; the statements of backfills call it.';
comment on function {schema}.backfills_with_room is
    'Internal: returns the running backfills that a beat may mark; look() and the statement mark_backfill of beats call it.';
comment on function {schema}.instant_of is
    'Internal: returns the instant at which the clocks of a zone first show a local time; day_of_range() and end_of_range() call it.';
comment on function {schema}.begins_where_set is
    'Internal: returns whether a schedule has no occurrence from before it was set, unless the row has an anchor; backfill() calls it.';
comment on function {schema}.own_zone is
    'Internal: returns the zone that the text of a schedule names itself, NULL for none; zone_of() calls it.';
comment on function {schema}.zone_of is
    'Internal: returns the zone in whose days a periodic task runs, NULL if no beat has filled it in yet; backfill() calls it.';
comment on function {schema}.refuse_without_zone is
    'Internal: raises SQLSTATE 22023 if the zone of a row is needed and not known yet; day_of_range() and end_of_range() call it.';
comment on function {schema}.day_of_range is
    'Internal: returns the first instant of a day, or the last one if the day ends a range; backfill() and end_of_range() call it.';
comment on function {schema}.end_of_range is
    'Internal: returns the end of a range that was given as a text; backfill() calls it.';
comment on function {schema}.is_backfilled is
    'Internal: returns whether a backfill of one of these periodic tasks is running; active_job_gone() calls it.';
comment on function {schema}.similar_names is
    'Internal: returns all names that differ from this one by one typing error; similar_name() and similar_group_in_words() call it.';
comment on function {schema}.similar_name is
    'Internal: returns the periodic task whose name differs from this one by one typing error; unknown_in_words(), validate_after() and the statement similar_name of the Python API call it.';
comment on function {schema}.similar_group_in_words is
    'Internal: returns which group may have been meant, as the end of a sentence; refuse_group_of_nobody() and validate_order_of_groups() call it.';
comment on function {schema}.unknown_in_words is
    'Internal: returns the sentence that there is no such periodic task, with the reason or the name that was probably meant; refuse_unknown() and the Python API call it.';
comment on function {schema}.refuse_unknown is
    'Internal: raises SQLSTATE P0002 for an unknown periodic task, with the name that was probably meant; the public functions call it.';
comment on function {schema}.to_replan is
    'Internal: returns the names of the periodic tasks that replan() would have planned again; it and the CLI call it.';
comment on function {schema}.refuse_rows_of_code is
    'Internal: raises an error if the code of an app declares one of these periodic tasks for another owner; schedule() and the Python API call it.';
comment on function {schema}.refuse_owners_of_code is
    'Internal: raises an error if one of these owners is the code of an app; schedule() and the Python API call it.';
comment on function {schema}.is_a_group is
    'Internal: returns whether a periodic task or a row of task_group names a group; refuse_group_of_nobody() and validate_order_of_groups() call it.';
comment on function {schema}.refuse_group_of_nobody is
    'Internal: raises SQLSTATE P0002 for an unknown group; pause_group(), resume_group() and finish_group() call it.';
comment on function {schema}.retry_failures_of is
    'Internal: runs the jobs again that have paused a group, and returns how many; resume_group() calls it.';

-- The sentences of explain(), and the views job, status and overdue.
comment on function {schema}.in_the_calendar is
    'Internal: returns an instant that every client can read, else NULL; the view job calls it.';
comment on function {schema}.busy_until_of_waiting is
    'Internal: returns until when the jobs that a buffered job waits for count as under way; the view job calls it.';
comment on function {schema}.patience is
    'Internal: returns how late a decision may be and still count as on time; the views status and overdue and explain() call it.';
comment on function {schema}.is_recent is
    'Internal: returns whether a node that was last seen then counts as alive; the functions that write sentences call it.';
comment on function {schema}.node_shown is
    'Internal: returns the host and the process of a node''s id; the functions that write sentences and alerts call it.';
comment on function {schema}.last_seen is
    'Internal: returns in words when a node was last seen; mark_in_words() and run_in_words() call it.';
comment on function {schema}.nodes_in_words is
    'Internal: returns in words whether any beat and any worker is alive; explain() and the view overdue call it.';
comment on function {schema}.mark_in_words is
    'Internal: returns in words which beat has marked a row or a job; job_in_words() and why_undecided() call it.';
comment on function {schema}.broker_in_words is
    'Internal: returns in words what a living beat knows of its broker, NULL if all is well; why_undecided() and health call it.';
comment on function {schema}.due_since is
    'Internal: returns since when a job is due that was not sent or not picked up; the view overdue and health call it.';
comment on function {schema}.why_undecided is
    'Internal: returns in words why no beat has decided a row that is due; row_in_words() and the view overdue call it.';
comment on function {schema}.in_the_way_since is
    'Internal: returns since when a running job has delayed the next run of its periodic task, NULL if it has not; run_in_words() and the views status and overdue call it.';
comment on function {schema}.run_in_words is
    'Internal: returns in words where a job runs, since when, and what ends it; job_in_words() calls it.';
comment on function {schema}.place_in_words is
    'Internal: returns in words what a job waits for that has no slot in its group; job_in_words() calls it.';
comment on function {schema}.job_in_words is
    'Internal: returns in words what a job does or waits for; explain() and the view overdue call it.';
comment on function {schema}.ahead_until is
    'Internal: returns until when a row counts as decided because the clock was ahead, else NULL; row_in_words() and state_in_words() call it.';
comment on function {schema}.row_in_words is
    'Internal: returns in words what a periodic task waits for; explain() calls it.';
comment on function {schema}.last_in_words is
    'Internal: returns in words how the last job of a periodic task ended; explain() calls it.';
comment on function {schema}.waits_for_a_beat is
    'Internal: returns whether a beat has something to do for a row, now or later; explain() calls it.';
comment on function {schema}.backfills_in_words is
    'Internal: returns in words which backfills of a periodic task are running; explain() calls it.';
comment on function {schema}.refusal_in_words is
    'Internal: returns in words why beats refuse a declaration in code; refusals_in_words(), unknown_in_words() and the alerts of beats use it.';
comment on function {schema}.refusals_in_words is
    'Internal: returns in words which declarations in code of a name beats refuse, NULL for none; explain() calls it.';
comment on function {schema}.state_in_words is
    'Internal: returns the state of a periodic task in a few words; the view status calls it.';
comment on function {schema}.to_be_planned is
    'Internal: returns the rows that a beat has to plan; the view overdue calls it.';

-- The groups.
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

comment on table {schema}.group_turn is
    'Internal: the groups in which a job may have its turn now, a row for each time that something has changed in one.';
comment on column {schema}.group_turn.group_name is 'Internal: the group.';
comment on column {schema}.group_turn.held is
    'Internal: whether a beat has seen that what keeps its jobs waiting ends without another row here.';

-- The tables of jobs.
comment on column {schema}.active_job.id is 'Internal: the Celery task id.';
comment on column {schema}.active_job.periodic_task is 'Internal: the name of the periodic task.';
comment on column {schema}.active_job.scheduled_for is 'Internal: the instant of the occurrence.';
comment on column {schema}.active_job.due_at is 'Internal: when it was due, with jitter and deferral; NULL for a manual job.';
comment on column {schema}.active_job.origin is 'Internal: schedule, catchup, backfill or manual.';
comment on column {schema}.active_job.state is
    'Internal: pending, sent, running, retrying, buffered, waiting, error or created.';
comment on column {schema}.active_job.exclusive is
    'Internal: whether it is the one job of its periodic task; the unique index job_one_at_a_time allows one such row for each name.';
comment on column {schema}.active_job.task is 'Internal: the Celery task.';
comment on column {schema}.active_job.queue is 'Internal: the queue; NULL: where the app routes the task.';
comment on column {schema}.active_job.message is 'Internal: the arguments and options that its message is made from.';
comment on column {schema}.active_job.on_lost is 'Internal: on_lost of the periodic task when the job was made.';
comment on column {schema}.active_job.tracking is 'Internal: what reports its end: full (the workers), result (the result backend) or send (nothing).';
comment on column {schema}.active_job.min_gap is 'Internal: min_gap of the periodic task when the job was made.';
comment on column {schema}.active_job.max_run_time is 'Internal: max_run_time of the periodic task when the job was made.';
comment on column {schema}.active_job.pause_after_failures is
    'Internal: pause_after_failures of the periodic task when the job was made; NULL for a backfill.';
comment on column {schema}.active_job.pickup_deadline is
    'Internal: how long it may wait for a worker before it is sent again.';
comment on column {schema}.active_job.created_at is 'Internal: when it was decided.';
comment on column {schema}.active_job.sent_at is 'Internal: when a beat recorded that the broker had the message.';
comment on column {schema}.active_job.started_at is 'Internal: when it first started.';
comment on column {schema}.active_job.attempt_at is 'Internal: when this attempt started.';
comment on column {schema}.active_job.busy_until is
    'Internal: its deadline. After it a beat sends the job again, runs it again or gives it up.';
comment on column {schema}.active_job.check_at is
    'Internal: no beat has to look at it before then; never later than busy_until.';
comment on column {schema}.active_job.run is 'Internal: how often it was to run again after it was lost.';
comment on column {schema}.active_job.attempt is 'Internal: how many retries came before this attempt.';
comment on column {schema}.active_job.sends is 'Internal: how often a beat began to send its message.';
comment on column {schema}.active_job.resends is 'Internal: how often it was sent again because no worker had started it.';
comment on column {schema}.active_job.refusals is 'Internal: how many attempts to send its message have failed.';
comment on column {schema}.active_job.token is 'Internal: the start that the row belongs to.';
comment on column {schema}.active_job.marked_by is 'Internal: the beat that sends it.';
comment on column {schema}.active_job.marked_at is 'Internal: since when; the mark is valid for its lease.';
comment on column {schema}.active_job.mark_lease is
    'Internal: how long the mark is valid: the lease of the beat that set it.';
comment on column {schema}.active_job.beat is 'Internal: the beat that sent it last.';
comment on column {schema}.active_job.worker is 'Internal: the worker that started it.';
comment on column {schema}.active_job.error is 'Internal: what went wrong last.';
comment on column {schema}.active_job.waits_for is
    'Internal: what a job waits for: predecessor (another job of its name), upstream (the tasks in after) or slot (a slot in its group).';
comment on column {schema}.active_job.waited is
    'Internal: whether it has waited; then a later occurrence does not make it too late.';
comment on column {schema}.active_job.stop_request is
    'Internal: what the worker is asked to do with it while it runs: cancel or terminate.';
comment on column {schema}.active_job.group_name is 'Internal: the group of the periodic task when the job was made.';
comment on column {schema}.active_job.slot is
    'Internal: its slot in its group, from 1; 0 if the group had no limit when the job was made or released; NULL while it waits.';
comment on column {schema}.active_job.on_error is 'Internal: on_error of the periodic task when the job was made.';
comment on column {schema}.active_job.backfill is 'Internal: the backfill that made it.';
comment on column {schema}.active_job.kind is 'Internal: kind of the periodic task when the job was made.';
comment on column {schema}.active_job.target is 'Internal: target of the periodic task when the job was made.';
comment on column {schema}.active_job.due_in is 'Internal: due_in of the periodic task when the job was made.';
comment on column {schema}.active_job.due_by is
    'Internal: when the job for people is overdue, counted from when it could be picked up.';
comment on column {schema}.active_job.owner is 'Internal: the person who has the job for people.';

comment on table {schema}.finished_job_default is
    'Internal: the partition of finished_job for days that have none of their own.';
comment on column {schema}.finished_job.id is 'Internal: the Celery task id.';
comment on column {schema}.finished_job.periodic_task is 'Internal: the name of the periodic task.';
comment on column {schema}.finished_job.scheduled_for is 'Internal: the instant of the occurrence.';
comment on column {schema}.finished_job.last_scheduled_for is
    'Internal: the end of the range, if several occurrences were skipped together.';
comment on column {schema}.finished_job.occurrences is 'Internal: how many occurrences the row records.';
comment on column {schema}.finished_job.origin is 'Internal: schedule, catchup, backfill or manual.';
comment on column {schema}.finished_job.state is
    'Internal: succeeded, failed, revoked, expired, lost, skipped or untracked.';
comment on column {schema}.finished_job.reason is 'Internal: why it was skipped.';
comment on column {schema}.finished_job.blocked_by is 'Internal: the job that blocked it.';
comment on column {schema}.finished_job.task is 'Internal: the Celery task.';
comment on column {schema}.finished_job.queue is 'Internal: the queue; NULL: where the app routes the task.';
comment on column {schema}.finished_job.restart_data is
    'Internal: what a lost job that never started needs to start after all.';
comment on column {schema}.finished_job.created_at is 'Internal: when it was decided; the partition follows from it.';
comment on column {schema}.finished_job.sent_at is 'Internal: when a beat recorded that the broker had the message.';
comment on column {schema}.finished_job.started_at is 'Internal: when it first started.';
comment on column {schema}.finished_job.finished_at is 'Internal: when it became final.';
comment on column {schema}.finished_job.run is 'Internal: how often it was to run again after it was lost.';
comment on column {schema}.finished_job.attempt is 'Internal: how many retries came before the last attempt.';
comment on column {schema}.finished_job.sends is 'Internal: how often a beat began to send its message.';
comment on column {schema}.finished_job.beat is 'Internal: the beat that sent it last.';
comment on column {schema}.finished_job.worker is 'Internal: the worker that started it.';
comment on column {schema}.finished_job.error is 'Internal: what went wrong.';
comment on column {schema}.finished_job.busy_until is 'Internal: its deadline when it ended.';
comment on column {schema}.finished_job.arguments is
    'Internal: args and kwargs of a manual job that has not succeeded, for retry_job().';
comment on column {schema}.finished_job.owner is 'Internal: the person who had the job for people when it ended.';
comment on column {schema}.finished_job.due_by is 'Internal: when the job for people was to be done by.';
comment on column {schema}.finished_job.note is 'Internal: what its owner said of its end.';
comment on column {schema}.finished_job.due_at is 'Internal: as in the view job.';
comment on column {schema}.finished_job.group_name is 'Internal: as in the view job.';

comment on function {schema}.waits_for_others is
    'Internal: returns whether each occurrence of a row waits for other tasks; submit, submit_free, submit_backfill() and released() call it.';
comment on function {schema}.first_end is
    'Internal: returns the first end of a periodic task for an occurrence or a later one; ends_for() and due_after() call it.';
comment on function {schema}.last_ends is
    'Internal: returns the ends of a periodic task for its last occurrences; due_after(), not_ended_since() and all_ended_since() call it.';
comment on function {schema}.lets_go_on is
    'Internal: returns whether an end lets the tasks go on that run after it; ends_for() and due_after() call it.';
comment on function {schema}.ends_for is
    'Internal: returns which upstream tasks have not ended for an occurrence, and which end keeps it from running; settle_downstream() and wait_for_others_in_words() call it.';
comment on function {schema}.due_after is
    'Internal: returns for which occurrence a row without a schedule is due after its upstream tasks; settle_downstream() and row_after_in_words() call it.';
comment on function {schema}.ends_by_skip is
    'Internal: returns whether an occurrence that was skipped for a reason has ended with that; first_end(), last_ends(), due_after(), end_by(), last_records() and the statement expected call it.';
comment on function {schema}.last_records is
    'Internal: returns the last records of a periodic task that decide about those that come after it; prune() calls it.';
comment on function {schema}.turn_of_one is
    'Internal: locks a row of last_author unless another session has it, and returns its name; make_days(), prune() and the statements that write what code declares call it.';
comment on function {schema}.kept_for is
    'Internal: returns a span after which something may be deleted, and fails if the settings do not allow it; prune() and prune_changes() call it.';
comment on function {schema}.one_author is
    'Internal: has transactions that write waits_for or after come one after the other; validate_after() and a trigger of task_group call it.';
comment on table {schema}.last_author is
    'Internal: what only one transaction at a time may do, and which has done it last.';
comment on column {schema}.last_author.what is 'Internal: the column that is written, or the function.';
comment on column {schema}.last_author.transaction is 'Internal: the id of the transaction.';
comment on function {schema}.validate_after is
    'Internal: fails if a row may not come after the tasks that it names; after_written() calls it.';
comment on function {schema}.after_written is
    'Internal: keeps dependency equal to the column after; the triggers of periodic_task call it.';
comment on function {schema}.decided_after is
    'Internal: has beats look again at a row without a schedule that was decided; a trigger of periodic_task calls it.';
comment on function {schema}.refuse_named_in_after is
    'Internal: fails if a row that stays comes after one of these; after_written() and after_removed() call it.';
comment on function {schema}.after_removed is
    'Internal: keeps dependency equal to the column after where rows are removed; a trigger of periodic_task calls it.';
comment on function {schema}.settle_downstream is
    'Internal: has tasks go on whose upstream tasks have ended; beats call it.';
comment on function {schema}.missing_in_words is
    'Internal: returns upstream tasks that have not ended, with their states; the two functions below call it.';
comment on function {schema}.wait_for_others_in_words is
    'Internal: returns what a job waits for whose upstream tasks have not all ended; job_in_words() calls it.';
comment on function {schema}.row_after_in_words is
    'Internal: returns what a row without a schedule waits for that runs after others; row_in_words() calls it.';
comment on table {schema}.dependency is
    'Internal: the column after of periodic_task, a row for each name in it; a trigger writes it.';
comment on column {schema}.dependency.upstream is 'Internal: the periodic task that comes first.';
comment on column {schema}.dependency.downstream is 'Internal: the periodic task that names it.';
comment on table {schema}.dependency_turn is
    'Internal: what beats have to look at, because something has ended or changed before it.';
comment on column {schema}.dependency_turn.upstream is 'Internal: a periodic task that has ended: all after it.';
comment on column {schema}.dependency_turn.downstream is 'Internal: a periodic task to look at; else NULL.';
comment on column {schema}.dependency_turn.tries is 'Internal: how often a beat has found it locked.';
comment on function {schema}.check_after is
    'Internal: has what comes after what be checked later in this transaction, or now; import calls it.';
comment on function {schema}.end_by is
    'Internal: returns the last record of a periodic task up to an instant, if that is an end; ends_for() calls it.';
comment on function {schema}.undone_from is
    'Internal: returns from which instant on something is left to do, of each of these periodic tasks; ends_for() and due_after() call it.';
comment on function {schema}.most_before is
    'Internal: returns how many tasks undone_from() looks at.';
comment on function {schema}.all_before is
    'Internal: returns periodic tasks and those before them; undone_from() and row_after_in_words() call it.';
comment on function {schema}.all_ended_since is
    'Internal: returns whether all upstream tasks have ended since the last occurrence of a row without a schedule; undone_from() calls it.';
comment on function {schema}.planned_again is
    'Internal: has beats look at what comes after a row that was planned again; a trigger of periodic_task calls it.';
comment on function {schema}.each_name_once is
    'Internal: returns the column after as it is stored; the row trigger of periodic_task calls it.';
comment on function {schema}.not_ended_since is
    'Internal: returns which upstream tasks have not ended since the last occurrence of a row without a schedule; due_after() calls it.';
comment on function {schema}.ends_count_from is
    'Internal: returns the occurrence after which ends count for a row without a schedule; due_after(), not_ended_since() and all_ended_since() call it.';

-- The audit trail.
comment on sequence {schema}.change_id_seq is 'Internal: the ids of changes.';
comment on function {schema}.said_of_change is
    'Internal: returns a setting of the session that says who acts or why, and refuses one that is too long; the functions that record changes call it.';
comment on function {schema}.acting_person is
    'Internal: returns who acts, pgbeat.who of the session or its role; the functions that pause, cancel and record call it.';
comment on function {schema}.reason_of_change is
    'Internal: returns pgbeat.reason of the session; the functions that record changes call it.';
comment on function {schema}.in_seconds is
    'Internal: returns a span in seconds; as_recorded() calls it.';
comment on function {schema}.in_iso is
    'Internal: returns an instant as text, in UTC; as_recorded() and the triggers that record call it.';
comment on function {schema}.as_recorded is
    'Internal: returns what is recorded of a periodic task, without its arguments; the triggers that record and definition_before() call it.';
comment on function {schema}.arguments_as_recorded is
    'Internal: returns the arguments of a periodic task, hidden if it is sensitive; the triggers that record and definition_before() call it.';
comment on function {schema}.set_arguments is
    'Internal: returns the arguments of a periodic task that are not empty, hidden if it is sensitive; the triggers that record call it.';
comment on function {schema}.record_act is
    'Internal: records what a person or a program did to a periodic task, a job or a backfill; the functions that do so call it.';
comment on function {schema}.record_created is 'Internal: records new periodic tasks; a trigger of periodic_task calls it.';
comment on function {schema}.record_removed is 'Internal: records removed periodic tasks; a trigger of periodic_task calls it.';
comment on function {schema}.record_next_run is
    'Internal: records a next_run_at that no beat has written; a trigger of periodic_task calls it.';
comment on function {schema}.record_changed is 'Internal: records a changed periodic task; a trigger of periodic_task calls it.';
comment on function {schema}.group_as_recorded is 'Internal: returns what is recorded of a group; record_group() calls it.';
comment on function {schema}.window_as_recorded is 'Internal: returns what is recorded of a named window; record_window() calls it.';
comment on function {schema}.record_shared is
    'Internal: records a group or a named window that differs; record_group() and record_window() call it.';
comment on function {schema}.record_group is 'Internal: records a written group; a trigger of task_group calls it.';
comment on function {schema}.record_window is 'Internal: records a written window; a trigger of blackout calls it.';
comment on function {schema}.is_sensitive_since is
    'Internal: tells whether the row that a change was about is sensitive now, or was so when it was removed; arguments_of_change() calls it.';
comment on function {schema}.masked_arguments is
    'Internal: returns recorded arguments with a mask in place of those that are not empty; arguments_of_change() calls it.';
comment on function {schema}.arguments_of_change is
    'Internal: returns the arguments that a change was about, masked if its row is sensitive now, NULL for who may not read them; the Python API calls it.';
comment on function {schema}.prune_changes is
    'Internal: deletes the oldest changes that are older than a span, up to a number; beats call it.';
comment on function {schema}.definition_before is
    'Internal: returns the definition that a periodic task had at a revision or before a change; revert() and the Python API call it.';
comment on function {schema}.refuse_revert is 'Internal: raises the error of a revert that is not possible; definition_before() and revert() call it.';
comment on function {schema}.refuse_revert_of_unknown is
    'Internal: raises the error of a revert of a name that no periodic task has; definition_before() calls it.';
comment on function {schema}.start_manual_job is
    'Internal: starts a job of a periodic task; trigger() and retry_job() call it.';
