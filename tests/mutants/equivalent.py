"""Mutants that change nothing that a test could see, each with the reason."""

EQUIVALENT: dict[str, str] = {}
