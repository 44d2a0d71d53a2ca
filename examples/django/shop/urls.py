"""The admin, and the dashboard behind its login."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("pgbeat/", include("celery_pgbeat.django.urls")),
]
