"""The only package that contains SQL. It imports no Celery.

`sql/` has one statement in each file, named by its verb; the listing is everything that beats, workers and callers run.
`migrations/` and `definitions/` make the schema that the statements need. Invariant: every statement commits by itself
(autocommit). So no lock of ours outlives its round trip, and no transaction of ours waits for Python, for a broker or
for another process.
"""
