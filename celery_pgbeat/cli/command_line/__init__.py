"""What makes commands of a command line: groups, the app and the database, errors, completion."""
