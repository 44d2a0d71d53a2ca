"""celery-pgbeat in a Django project: an app with models, an admin, checks, and the dashboard behind Django's login.

    INSTALLED_APPS += ["celery_pgbeat.django"]

Nothing else in the package imports it. It needs the extra `django`.
"""

from __future__ import annotations

from celery_pgbeat.django.place import database_url

__all__ = ["database_url"]
