"""What runs in the beat process: Celery's class and the thread behind it.

`wiring.py` makes the parts and `loop.py` runs them: `decide/` makes jobs of rows, `send/` makes messages of jobs, and
`upkeep/` does the rest. They reach Postgres only through classes of queries, leave to `planning` what it can decide,
and import nothing of the worker. Invariant: a beat sends no job after its lease on that job is over, by a clock that
goes on while the process or the machine is stopped.
"""
