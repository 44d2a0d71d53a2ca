"""Recurrence rules of RFC 5545: RRULE with DTSTART, RDATE and EXDATE."""
