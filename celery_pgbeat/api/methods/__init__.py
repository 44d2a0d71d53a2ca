"""The methods of `PgBeat`, a module for each subject."""
