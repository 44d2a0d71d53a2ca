"""sqlalchemy-celery-beat: the schedules are in Postgres, behind SQLAlchemy's models."""

from __future__ import annotations

import sqlalchemy
from sqlalchemy_celery_beat.models import CrontabSchedule, IntervalSchedule, Period, PeriodicTask
from sqlalchemy_celery_beat.session import SessionManager

from benchmarks.peers import given

app = given.make_app("sqlalchemy_celery_beat.schedulers:DatabaseScheduler")
app.conf.update(beat_dburi=given.STATE.replace("postgresql://", "postgresql+psycopg2://"), beat_schema="peer")


def fill() -> None:
    """Give it its schedules."""
    manager = SessionManager()
    engine, make_session = manager.create_session(app.conf.beat_dburi, schema="peer")
    manager.prepare_models(engine, schema="peer")
    with make_session() as session:
        when = CrontabSchedule(timezone="UTC") if given.CRONTABS else IntervalSchedule(every=1, period=Period.DAYS)
        session.add(when)
        session.flush()
        session.execute(sqlalchemy.insert(PeriodicTask), [_row(name, when) for name in given.NAMES])
        session.commit()


def _row(name: str, when: CrontabSchedule | IntervalSchedule) -> dict[str, object]:
    return {
        "name": name,
        "task": given.TASK,
        "args": f'["{name}"]',
        "queue": given.QUEUE,
        "last_run_at": given.LAST_RUN_AT,
        "schedule_id": when.id,
        "discriminator": type(when).__name__.lower(),
    }


if __name__ == "__main__":
    fill()
