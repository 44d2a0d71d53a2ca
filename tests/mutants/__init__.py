"""Defects planted in the package, one at a time: the tests that are named for each must find it.

`python -m tests.mutants` plants and counts. A test that is deleted and a mutant that survives since then: the test was
not superfluous.

- `by_hand.py`: defects that somebody could plausibly make
- `drawn.py`: defects made by rule, in places that a hash chooses
- `equivalent.py`: those of them that change nothing that a test could see
"""
