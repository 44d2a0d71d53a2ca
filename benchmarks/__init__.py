"""How fast it is, beside the peers and beside the bare limit of the machine: `python -m benchmarks --help`.

It produces figures that you can reproduce, on servers that it starts and ends by itself. Nothing else may need it. It
never compares figures of two runs.
"""
