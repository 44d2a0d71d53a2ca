"""Cron of five, six and seven fields, and Celery's crontab."""
