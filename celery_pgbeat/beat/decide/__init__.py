"""What a cycle of the beat does with the rows: plan, mark, decide, submit, recover and backfill.

It reads and writes through `BeatQueries` and hands submitted jobs to `send`. It never talks to a broker.
"""
