"""The dashboard: each page on a real Postgres, who may open it, what it does when the database is away."""
