"""How the records of other schedulers are read: tables, Redis, files. Knows no meaning."""
