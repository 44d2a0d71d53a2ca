"""The way back: our rows as entries of another scheduler, printed for its own tools. Knows no database."""
