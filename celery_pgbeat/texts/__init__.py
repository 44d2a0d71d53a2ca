"""Texts that people and rows bring: read, checked, and made safe to show."""
