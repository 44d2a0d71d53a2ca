"""What a turn does with the rows: plan, mark, decide, submit, recover and backfill.

It reads and writes through `BeatQueries` and hands the jobs that it has submitted to `send`. It never talks to a broker.
"""
