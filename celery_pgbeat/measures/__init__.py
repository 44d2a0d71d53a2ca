"""What a beat tells of how it is doing: alerts, metrics for Prometheus, spans of OpenTelemetry.

In threads of its own, on connections that it shares with nobody who is making a turn: whoever measures, scrapes or
listens slowly makes no tick late. Only spans are noted where things happen, and exported by the user's SDK. The
invariant: without this room the beat does just the same.
"""
