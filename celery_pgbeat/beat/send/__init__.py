"""From a submitted job to a message at the broker, and to the record of what became of it.

Nothing here decides whether a job exists. An error of the broker means "unknown", never "not sent".
"""
