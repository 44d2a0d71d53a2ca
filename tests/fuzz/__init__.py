"""What strangers can write, generated: schedules, windows, rows, settings, files, headers of messages.

Each test runs for PGBEAT_TEST_FUZZ seconds: a moment in the ordinary test run, ten minutes in all under `tox -e fuzz`.
What fails is kept below `.hypothesis` and `.fuzz`, and tried first the next time. What is found becomes a test beside
the code that it broke.
"""
