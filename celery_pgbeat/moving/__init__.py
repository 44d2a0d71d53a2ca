"""Moving in from another scheduler: its entries become definitions, and a report says what became of each.

`kinds/` has one file for each scheduler. It turns records, which are plain data, into answers: taken, or refused with
the reason. It does no I/O of its own. `readers/` reads tables, Redis and files. `move.py` compares the answers with our
table and writes them. The invariant: nothing here runs code that a source holds, unless the caller trusts its pickles.
"""
