"""From a submitted job to its message at the broker, and to the record of whether it was sent.

Nothing here decides whether a job exists. An error of the connection to the broker means "unknown", never "not sent".
"""
