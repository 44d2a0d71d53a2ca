"""What a beat does besides its ticks: heartbeats, the days of the history, rows that code declares, missing reports.

Nothing here submits or sends a job.
"""
