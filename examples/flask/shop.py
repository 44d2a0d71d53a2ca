"""A Flask app factory, a Celery app that runs its tasks in the app's context, and the dashboard below /beat."""

import os
from typing import Any

from a2wsgi import ASGIMiddleware
from celery import Celery, Task, shared_task
from flask import Flask, abort, current_app, request, session
from itsdangerous import BadSignature
from sqlalchemy import create_engine, text
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from celery_pgbeat import PgBeat
from celery_pgbeat.errors import UnknownPeriodicTask
from celery_pgbeat.web import dashboard


def create_app() -> Flask:
    """Make the Flask app, with the Celery app and the Python API of the periodic tasks in its extensions."""
    app = Flask("shop")
    app.config.from_mapping(
        SECRET_KEY=os.environ.get("SECRET_KEY", "only for this example"),
        DATABASE_URL=os.environ["PGBEAT_URL"],
        CELERY={  # the broker is CELERY_BROKER_URL
            "timezone": "Europe/Berlin",
            "beat_schedule": {
                "poll-inbox": {
                    "task": "shop.poll_inbox",
                    "schedule": 10.0,
                    "kwargs": {"box": "orders"},
                    "pgbeat": {"max_run_time": "30s"},  # our columns, beside Celery's keys
                },
            },
        },
    )
    celery = make_celery(app)
    beat = app.extensions["pgbeat"] = PgBeat(celery, url=app.config["DATABASE_URL"])
    app.extensions["engine"] = create_engine(app.config["DATABASE_URL"])
    app.add_url_rule("/login", view_func=login, methods=["POST"])
    app.add_url_rule("/orders", view_func=place_order, methods=["POST"])
    app.add_url_rule("/orders/<int:order>/remind", view_func=remind_now, methods=["POST"])

    def may_look(asked: Any) -> bool:
        """Tell whether Flask's session, which is a signed cookie, belongs to a member of the staff."""
        serializer = app.session_interface.get_signing_serializer(app)
        try:
            return bool(serializer.loads(asked.cookies.get("session", "")).get("staff"))
        except BadSignature:
            return False

    pages = ASGIMiddleware(dashboard(beat, authorize=may_look, title="shop"))
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/beat": pages})
    return app


def make_celery(app: Flask) -> Celery:
    """Make the Celery app, whose tasks run in the context of the Flask app."""

    class ContextTask(Task):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            with app.app_context():
                return self.run(*args, **kwargs)

    celery = Celery(app.name, task_cls=ContextTask)
    celery.config_from_object(app.config["CELERY"])
    celery.set_default()
    app.extensions["celery"] = celery
    return celery


@shared_task(name="shop.poll_inbox")
def poll_inbox(box: str) -> str:
    """Run every ten seconds."""
    return f"nothing new in {box} of {current_app.name}"


@shared_task(name="shop.remind")
def remind(order: int) -> str:
    """Run once for an order."""
    return f"A reminder for order {order} of {current_app.name}"


def login() -> str:
    """Log in. This example believes everybody."""
    session["staff"] = request.form.get("user") == "anna"
    return "hello"


def place_order() -> dict[str, int]:
    """Store an order and its reminder: both are committed, or neither is."""
    with current_app.extensions["engine"].begin() as connection:
        order = connection.execute(
            text('insert into "order" (email) values (:email) returning id'), {"email": request.form["email"]}
        ).scalar_one()
        current_app.extensions["pgbeat"].schedule(
            f"remind-{order}",
            task="shop.remind",
            schedule="2099-12-24 08:00",  # once, in the zone of the app
            args=[order],
            connection=connection,
        )
    return {"id": order}


def remind_now(order: int) -> dict[str, str]:
    """Send the reminder now."""
    try:
        return {"job": str(current_app.extensions["pgbeat"].trigger(f"remind-{order}"))}
    except UnknownPeriodicTask as error:
        abort(404, str(error))
