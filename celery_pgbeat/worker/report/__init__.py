"""Reports of what became of a job: their way from a process to Postgres, and the one rule about their order.

A report is a value (`reports.py`). Two sets of signal handlers make them: `tracker.py` in the process that ran the
task, `parent_signals.py` in the main process, for a run whose process can no longer report. From there the way is the
same for all:

    pool process    tracker ─── a finish ───► report_pipe ───┐       (made before the fork)
                       └─── a retry, ... ───► Postgres       ▼
                                                         report_thread ──► report_queue ──► Postgres
                                                             ▲
    main process    parent_signals, stop_requests, tracker ──┘       (`put` never waits)

- A process does not wait for a finish. A pool process sends it through the pipe, and the main process writes it
  together with others; if the pipe does not take it, the pool process writes it itself.
- Any other report of the process that ran the task, such as a retry, is written before the process goes on, because
  another copy of the message is on its way. If Postgres cannot take it now, the process leaves it to a report thread of
  its own. But a retry goes through the pipe, because the process may be replaced before Postgres is back.

The rule: **a job's own report is written before the report that its process has died.** The report of the death then
changes nothing. This is so because

1. a process sends its report before it dies, and the main process queues the death later;
2. the report thread empties the queue first and the pipe afterwards, so it has the report when it has the death;
3. it writes finishes before all other reports, and puts a retry from the pipe before all reports that wait;
4. a report waits as long as an earlier one of its job is kept, because its row is locked or Postgres refused it.

Reports of different jobs have no order.
"""
