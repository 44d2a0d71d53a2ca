"""What a beat tells of how it is doing: alerts, and metrics for Prometheus.

In threads of its own, on connections that it shares with nobody who is making a turn: whoever measures, scrapes or
listens slowly makes no tick late. The invariant: without this room the beat does just the same.
"""
