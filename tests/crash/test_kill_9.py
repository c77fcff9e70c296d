"""`fairlead up` is killed while clients write and watch: acknowledged writes are kept.

Each round starts the cluster on the data directory of the previous round, checks it, writes through
several connections and kills the process during the writes. One watch continues through all rounds:
it resumes after the last event that it received. The test finds acknowledged writes that are lost,
events that arrive twice or never, and resource versions that are used twice.
"""

from __future__ import annotations

import itertools
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from tests.up_process import BROKEN, Connection, up

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WRITERS = 4
OBJECTS = 3


def version_of(obj):
    return int(obj["metadata"]["resourceVersion"])


@dataclass
class Observations:
    """What clients have received: `acknowledged` writes, and the events of the watch."""

    events: list[tuple[str, str, str, int]] = field(default_factory=list)
    kept: set[tuple[str, int]] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    replica: dict[str, int] = field(default_factory=dict)
    seen: int = 0
    marks: int = 0

    def tell(self, event):
        """Process one event of the watch."""
        meta, version = event["object"]["metadata"], version_of(event["object"])
        assert version > self.seen, f"{event['type']} {meta['name']}: twice, or out of order"
        self.seen = version
        self.events.append((event["type"], meta["name"], meta["uid"], version))
        if event["type"] == "DELETED":
            assert self.replica.pop(meta["name"], None) is not None
        else:
            assert (event["type"] == "ADDED") == (meta["name"] not in self.replica)
            self.replica[meta["name"]] = version

    def check(self, items):
        """Check that nothing is missing when the watch has reached the list `items`."""
        assert self.replica == {item["metadata"]["name"]: version_of(item) for item in items}
        observed = {(name, version) for kind, name, _, version in self.events if kind != "DELETED"}
        assert self.kept <= observed
        gone = {uid for kind, _, uid, _ in self.events if kind == "DELETED"}
        assert self.gone <= gone


def look(observed, config):
    """Resume the watch, and compare its events with a list."""
    observed.marks += 1
    mark = f"mark-{observed.marks}"
    with Connection(config) as client, Connection(config) as watching:
        assert client.ask("POST", CONFIG_MAPS, {"metadata": {"name": mark}})[0] == 201
        status, lines = watching.lines(f"{CONFIG_MAPS}?watch=1&resourceVersion={observed.seen}")
        assert status == 200
        for event in lines:
            observed.tell(event)
            if event["object"]["metadata"]["name"] == mark:
                break
        observed.check(client.ask("GET", CONFIG_MAPS)[1]["items"])


def watch(observed, config):
    """Continue the watch until the cluster is killed."""
    with suppress(*BROKEN), Connection(config) as client:
        _, lines = client.lines(f"{CONFIG_MAPS}?watch=1&resourceVersion={observed.seen}")
        for event in lines:
            observed.tell(event)


def write(observed, config, number, acknowledged):
    """Create, change and delete a few objects repeatedly, until the cluster is killed."""
    with suppress(*BROKEN), Connection(config) as client:
        for count in itertools.count():
            change(observed, client, f"w{number}-{count % OBJECTS}", count)
            acknowledged.release()


def change(observed, client, name, count):
    """Create an object that does not exist; change or delete one that does."""
    path = f"{CONFIG_MAPS}/{name}"
    status, found = client.ask("GET", path)
    if status == 404:
        status, kept = client.ask("POST", CONFIG_MAPS, {"metadata": {"name": name}})
    elif count % 5 == 4:
        status, kept = client.ask("DELETE", path)
    else:
        status, kept = client.ask("PUT", path, {**found, "data": {"count": str(count)}})
    assert status in (200, 201), kept
    if kept["kind"] == "ConfigMap":
        observed.kept.add((name, version_of(kept)))
    else:
        observed.gone.add(found["metadata"]["uid"])


def busy(observed, config, pool):
    """Run clients in threads of `pool`; return their futures and the counter of writes."""
    acknowledged = threading.Semaphore(0)
    writers = (
        pool.submit(write, observed, config, number, acknowledged) for number in range(WRITERS)
    )
    return [pool.submit(watch, observed, config), *writers], acknowledged


def killed(home, rounds):
    """Run this many rounds on one directory; return what clients have received in all of them."""
    observed = Observations()
    options = (
        *("--nodes", "0", "--data-dir", str(home)),
        *("--kubeconfig", str(home.with_name("kubeconfig"))),
    )
    with ThreadPoolExecutor(WRITERS + 1) as pool:
        for number in range(rounds):
            with up(*options, ending=signal.SIGKILL) as config:
                look(observed, config)
                clients, acknowledged = busy(observed, config, pool)
                for _ in range(1 + number * 37 % 40):
                    assert acknowledged.acquire(timeout=60)
                threading.Event().wait(number * 7 % 20 / 1_000)
            for client in clients:
                client.result(60)
    with up(*options) as config:
        look(observed, config)
    return observed


def test_no_acknowledged_write_is_lost_by_kill_9(tmp_path):
    observed = killed(tmp_path / "home", 3)
    assert observed.kept
    assert observed.events


@pytest.mark.long
def test_no_acknowledged_write_is_lost_in_two_hundred_rounds_of_kill_9(tmp_path):
    observed = killed(tmp_path / "home", 200)
    assert observed.gone
    assert len(observed.kept) > 200
