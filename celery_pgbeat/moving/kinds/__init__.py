"""The schedulers that one can move in from: one file each, and its line in `moving/registry.py`."""
