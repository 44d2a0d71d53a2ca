"""ISO 8601: single dates and date-times, and repeating intervals."""
