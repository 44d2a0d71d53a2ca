"""What a beat reports about itself: alerts, metrics for Prometheus, spans of OpenTelemetry.

Counts and spans are made of a beat's events (`observer.py`). Everything that takes time has threads and connections of
its own, so a slow scrape or webhook makes no tick late; the user's SDK exports the spans. The invariant: without this
package the beat does just the same.
"""
