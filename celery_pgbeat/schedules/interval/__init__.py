"""Intervals: `every 30s`, `@every 1h30m`, `PT5M`, `P1M`."""
