"""What runs in the beat process: Celery's class, the tick, the publisher, the upkeep, the sync with the code.

It speaks to Postgres through the store only, decides nothing that `planning` could decide, and knows nothing of
the worker. Invariant: a beat sends nothing after its lease on it is over, by a clock that no stop can fool.
"""
