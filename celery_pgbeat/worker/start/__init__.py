"""May this job start? The message and its token, the guard before each task, and the job's span."""
