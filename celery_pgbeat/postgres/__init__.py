"""The only room that speaks SQL. It knows no Celery.

One statement a file in `sql/`, named by its verb; the listing is everything that we ever say to Postgres
while we work. `migrations/` builds what the statements speak to. Invariant: every statement commits by
itself (autocommit), so that no lock of ours ever outlives its round trip and no transaction of ours waits for
Python, for a broker or for another process.
"""
