"""Orders become a report: extract, two transforms, load, a person signs it off, publish.

`python pipeline.py` defines the six periodic tasks. Only `extract` has a schedule; each of the others names in `after`
what it comes after. Each step writes one file; see `folder` for where.
"""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

from celery import Celery

from celery_pgbeat import PgBeat, cron, current

HERE = Path(__file__).parent
DATA = HERE / "data"

app = Celery("pipeline", broker="redis://localhost")  # CELERY_BROKER_URL, if it is set, names another one
app.conf.timezone = "Europe/Berlin"
beat = PgBeat(app)  # the database is PGBEAT_URL


def own_folder() -> Path:
    """Return the folder of the instant for which this step is scheduled."""
    return DATA / f"{current().scheduled_for:%Y-%m-%d %H.%M.%S}"


def folder() -> Path:
    """Return the folder of this round: that of the last extract up to the instant of this step.

    A step has the instant of its extract, so it is the step's own folder. One that a person has started has the instant
    at which that was, and goes on with the extract before.
    """
    return max(raw.parent for raw in DATA.glob("*/raw.json") if raw.parent <= own_folder())


def write(path: Path, value: Any) -> None:
    """Write a file of JSON."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def read(path: Path) -> Any:
    """Read a file of JSON; one that is missing is an error."""
    return json.loads(path.read_text(encoding="utf-8"))


@app.task(name="pipeline.extract")
def extract() -> None:
    """Fetch the orders, as they are."""
    own_folder().mkdir(parents=True, exist_ok=True)
    with (HERE / "orders.csv").open(encoding="utf-8") as orders:
        write(own_folder() / "raw.json", list(csv.DictReader(orders)))


@app.task(name="pipeline.total")
def total() -> None:
    """Transform: what all orders are worth, in euros."""
    rates = read(HERE / "rates.json")
    euros = sum(float(order["amount"]) * rates[order["currency"]] for order in read(folder() / "raw.json"))
    write(folder() / "total.json", round(euros, 2))


@app.task(name="pipeline.count")
def count() -> None:
    """Transform: how many orders each customer has placed."""
    write(folder() / "count.json", Counter(order["customer"] for order in read(folder() / "raw.json")))


@app.task(name="pipeline.load")
def load() -> None:
    """Join what the two transforms have made."""
    write(folder() / "report.json", {"euros": read(folder() / "total.json"), "orders": read(folder() / "count.json")})


@app.task(name="pipeline.publish")
def publish() -> str:
    """Publish the report that was signed off."""
    report = read(folder() / "report.json")
    orders = report["orders"]
    text = f"{sum(orders.values())} orders of {len(orders)} customers: {report['euros']:.2f} euros"
    (DATA / "published.txt").write_text(text + "\n", encoding="utf-8")
    return text


PIPELINE = [
    {"name": "extract", "task": extract, "schedule": cron("0 6 * * *")},
    {"name": "total", "task": total, "after": ["extract"]},
    {"name": "count", "task": count, "after": ["extract"]},
    {"name": "load", "task": load, "after": ["total", "count"]},
    {
        "name": "sign-off",
        "kind": "human",  # no message is sent: an editor takes it, and says how it ended
        "after": ["load"],
        "target": ["editors"],
        "due_in": "4h",
        "subject": "Is report.json right?",
        "overlap": "buffer_all",  # each report is signed off, one after the other, also after a day without editors
    },
    {"name": "publish", "task": publish, "after": ["sign-off"]},
]

if __name__ == "__main__":
    beat.schedule_many(PIPELINE)  # all of them or, if one is wrong, none
    print("Defined", ", ".join(str(row["name"]) for row in PIPELINE))
