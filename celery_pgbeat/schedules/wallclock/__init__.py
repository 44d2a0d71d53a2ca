"""What all kinds compute with: readings of a wall clock, time zones, and instants. Nothing here knows a text.

`times_of_day.py` and `days.py` make a `pattern.py`: readings of a wall clock. `bounded.py` and `exceptions.py` cut
readings off, add some and remove some. `wall_times.py` turns readings into instants, with the offsets of `zones.py` and
the rules of `dst.py`. `grid.py` has instants at equal distances. `protocols.py` has the two
types that all of these share, `instants.py` the bounds of a search, `bitset.py` sets of small numbers.
"""
