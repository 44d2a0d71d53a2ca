"""The addresses of the dashboard: `path("pgbeat/", include("celery_pgbeat.django.urls"))`."""

from __future__ import annotations

from django.urls import path

from celery_pgbeat.django.views import page

app_name = "pgbeat"
urlpatterns = [path("", page, name="index"), path("<path:page>", page, name="page")]
