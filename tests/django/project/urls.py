"""The admin, and the dashboard in one line."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("admin/", admin.site.urls), path("ops/pgbeat/", include("celery_pgbeat.django.urls"))]
