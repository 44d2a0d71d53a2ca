"""Statements of the package on any Postgres: its planner and JIT, large tables, its settings, no free connection."""
