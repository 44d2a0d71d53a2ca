"""Shall this job stop? Requests to stop it, the signal that interrupts it, and `current()`, by which a task asks."""
