"""Commands of Django that know our tables, which are not Django's."""
