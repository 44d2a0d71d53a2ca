"""What runs in the beat process: Celery's class and the thread behind it.

`wiring.py` makes the parts and `loop.py` runs them: `decide/` turns rows into jobs, `send/` turns jobs into messages,
and `upkeep/` does the rest. They reach Postgres only through classes of queries, decide nothing that `planning` can
decide, and know nothing of the worker. Invariant: a beat sends nothing after its lease on it is over, by a clock that
goes on while the process or the machine is stopped.
"""
