"""The users of the broker that docs/securing.md defines: with these rights beats and workers run, and no others."""

from __future__ import annotations

import re
import shlex
from urllib.parse import urlsplit

import pytest
import redis

from tests.harness.management import Management
from tests.harness.processes import ROOT, Cluster
from tests.harness.rows import insert, jobs
from tests.harness.wait import eventually

PAGE = (ROOT / "docs" / "securing.md").read_text(encoding="utf-8")
SECRET = "s3cr3t"


def everything_runs(cluster: Cluster, beat: str, worker: str) -> None:
    """Run a schedule, a retry and a job that waits for its time, and stop a worker that has messages in hand."""
    insert(cluster.database, "plain", "every 1s", overlap="allow")
    insert(cluster.database, "prior", "every 1s", overlap="allow", priority=3)
    insert(cluster.database, "retried", "every 3s", task="app.flaky", args=["retried", 1])
    insert(cluster.database, "later", "every 3s", options={"countdown": 5}, overlap="allow")
    cluster.broker = beat
    scheduler = cluster.beat()
    cluster.broker = worker
    first = cluster.worker()
    for name in ("plain", "prior", "later"):
        ended(cluster, name)
    first.stop()
    second = cluster.worker()
    for name in ("plain", "retried", "later"):
        ended(cluster, name)

    for node in (scheduler, first, second):
        assert "NoPermission" not in node.log
        assert "ACCESS_REFUSED" not in node.log
        assert "is not usable" not in node.log


def ended(cluster: Cluster, name: str) -> None:
    before = sum(job["state"] == "succeeded" for job in jobs(cluster.database, name))
    eventually(
        lambda: sum(job["state"] == "succeeded" for job in jobs(cluster.database, name)) > before, 60, f"{name} ends"
    )


def test_redis_lets_beats_and_workers_do_what_the_page_allows(cluster: Cluster, redis_url: str) -> None:
    place = urlsplit(redis_url)
    number = place.path.strip("/")
    lines = re.findall(r"^acl setuser .*$", PAGE, re.MULTILINE)
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        for line in lines:
            client.execute_command(*line.replace("SECRET", SECRET).replace("&/0.", f"&/{number}.").split())
        try:
            host = f"{place.hostname}:{place.port}"
            urls = [place._replace(netloc=f"{user}:{SECRET}@{host}").geturl() for user in ("shop_beat", "shop_worker")]
            everything_runs(cluster, *urls)
            with redis.Redis.from_url(urls[0]) as beat, pytest.raises(redis.exceptions.NoPermissionError):
                beat.lrange("celery", 0, -1)
            refused = {(entry["username"], entry["object"]) for entry in client.acl_log(128)}
            # As the page says: the name of the library; and a beat that asks the workers, before one has the tracker.
            known = {one for one in refused if one[1] == "client|setinfo" or "reply.celery.pidbox" in one[1]}
            assert {("shop_beat", "lrange")} == refused - known
        finally:
            client.acl_deluser("shop_beat", "shop_worker")
            client.acl_log_reset()


@pytest.mark.amqp
def test_rabbitmq_lets_beats_and_workers_do_what_the_page_allows(
    cluster: Cluster, amqp_server: Management, amqp_url: str
) -> None:
    vhost = urlsplit(amqp_url).path.strip("/")
    urls = []
    for line in re.findall(r"^rabbitmqctl set_permissions .*$", PAGE, re.MULTILINE):
        *_, user, configure, write, read = shlex.split(line)
        name = f"{user}_{vhost}"
        urls.append(amqp_server.create_user(name, SECRET, vhost, configure=configure, write=write, read=read))
    try:
        everything_runs(cluster, *urls)
    finally:
        for url in urls:
            amqp_server.delete_user(str(urlsplit(url).username))
