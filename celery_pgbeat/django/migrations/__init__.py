"""The only migration of this app: see bring_schema.py."""
