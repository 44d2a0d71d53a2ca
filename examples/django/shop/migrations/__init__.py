"""Django's migrations of this app."""
