"""How fast it is, beside the peers and beside the bare limit of the machine: `python -m benchmarks --help`.

What it is for: figures that anybody can make again, on servers that it starts and ends by itself. What it may not do:
be needed by anything else, or say a figure that was not measured in the same run as the one it is compared with.
"""
