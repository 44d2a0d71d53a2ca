"""The other schedulers: each one's Celery app, and a program that gives it its schedules.

The apps run in an environment where celery-pgbeat need not be, so they import nothing of it.
"""
