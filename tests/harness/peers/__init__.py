"""Other schedulers, run by their own code: each fills its store with entries, and says when it would run them.

Each is a program, because Django and Celery keep what they are configured with for as long as a process lives.
"""
