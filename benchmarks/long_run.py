"""Measures a virtual day of `fairlead up` under churn: memory, descriptors, latency and storage.

    python benchmarks/long_run.py [--hours 24] [--speed 144] [--out FILE.csv]

The server has 200 nodes, its own process, and a data directory. A client keeps the cluster busy. In
every virtual hour, it rolls out and scales some of 20 Deployments, evicts pods, runs 20 Jobs that
are removed a minute after they end, and stops the kubelets of two nodes for half of the hour. Once
in every virtual hour, the tool records the server's memory, file descriptors, CPU time and files,
and the latency of requests.

The first quarter of the run is the warm-up. After it, there are these targets: memory grows by at
most 1 MB per virtual hour, the number of descriptors does not grow, and latency and files grow by
at most half. On a busy machine, the changes of an hour may take more than a virtual hour; growth is
stated per hour of changes.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from time import perf_counter, sleep
from typing import Any, Final

from rich.console import Console

from api_cost.clients import HOST, Address
from api_cost.figure import Figure, table
from api_cost.process import UP, Server, serving
from fairlead.api.nodes.kubelet_behaviour import KUBELET
from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_timestamp

NODES: Final = 200
DEPLOYMENTS: Final = 20
REPLICAS: Final = 40
STEPS_PER_HOUR: Final = 20
GROWTH_MIB_PER_HOUR: Final = 1e6 / 2**20
REQUESTS: Final = 40
WIDTH: Final = 150
_PODS: Final = "/api/v1/namespaces/default/pods"
_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
_JOBS: Final = "/apis/batch/v1/namespaces/default/jobs"
_CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
_MERGE: Final = "application/merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The state of the server after `churn_hours` hours of changes and `hours` of virtual time."""

    churn_hours: int
    hours: float
    memory_mib: float
    descriptors: int
    get_ms: float
    list_ms: float
    write_ms: float
    files_mib: float
    objects: int
    version: int
    cpu_s: float


class Client:
    """A keep-alive connection to the server, with the administrator's token."""

    def __init__(self, address: Address) -> None:
        """Connect to `address` at the first request."""
        self._connection = http.client.HTTPSConnection(HOST, address.port, context=address.tls)
        self._token = address.token

    def request(self, method: str, path: str, body: object = None, content: str = "") -> Any:
        """Return the answer as JSON. Raises OSError if the server ends the connection."""
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": content or "application/json",
        }
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, headers)
        return json.loads(self._connection.getresponse().read())


class Churn:
    """Makes the changes that keep the cluster busy; `seed` determines the changes."""

    def __init__(self, client: Client, seed: int) -> None:
        """Send requests with `client`."""
        self._client = client
        self._random = Random(seed)  # noqa: S311
        self._step = 0

    def begin(self) -> None:
        """Create the Deployments."""
        for number in range(DEPLOYMENTS):
            labels = {"app": f"web-{number}"}
            spec = {
                "replicas": REPLICAS,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": _pod_spec("0")},
            }
            meta = {"name": f"web-{number}"}
            self._client.request("POST", _DEPLOYMENTS, {"metadata": meta, "spec": spec})

    def step(self) -> None:
        """Make the changes of three virtual minutes."""
        self._step += 1
        web = f"{_DEPLOYMENTS}/web-{self._random.randrange(DEPLOYMENTS)}"
        if self._step % 4 == 0:
            template = {"spec": _pod_spec(str(self._step))}
            self._client.request("PATCH", web, {"spec": {"template": template}}, _MERGE)
        else:
            replicas = REPLICAS - 10 + self._random.randrange(20)
            self._client.request("PATCH", web, {"spec": {"replicas": replicas}}, _MERGE)
        self._run_job()
        self._evict_pods()
        if self._step % 10 == 0:
            self._fail_node("running" if self._step % 20 else "stopped")

    def _run_job(self) -> None:
        run = {"annotations": {RUN_DURATION: "120s"}}
        spec = {
            "parallelism": 5,
            "completions": 10,
            "ttlSecondsAfterFinished": 60,
            "template": {"metadata": run, "spec": {**_pod_spec("0"), "restartPolicy": "Never"}},
        }
        body = {"metadata": {"name": f"job-{self._step}"}, "spec": spec}
        self._client.request("POST", _JOBS, body)

    def _evict_pods(self) -> None:
        pods = self._client.request("GET", f"{_PODS}?limit=200")["items"]
        for pod in self._random.sample(pods, min(5, len(pods))):
            name = pod["metadata"]["name"]
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
            self._client.request("POST", f"{_PODS}/{name}/eviction", eviction)

    def _fail_node(self, behaviour: str) -> None:
        for number in (1, 2):
            patch = {"metadata": {"annotations": {KUBELET: behaviour}}}
            self._client.request("PATCH", f"/api/v1/nodes/node-{number}", patch, _MERGE)


def _pod_spec(image: str) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "64Mi"}
    return {
        "containers": [{"name": "c", "image": f"i:{image}", "resources": {"requests": requests}}]
    }


def _virtual_now(client: Client) -> float:
    """Return the server's virtual time in seconds: the creation time of a new object."""
    body = {"metadata": {"generateName": "clock-"}}
    meta = client.request("POST", _CONFIG_MAPS, body)["metadata"]
    client.request("DELETE", f"{_CONFIG_MAPS}/{meta['name']}")
    return parse_timestamp(meta["creationTimestamp"]) / NANOSECONDS_PER_SECOND


def _median_ms(act: Callable[[], object]) -> float:
    times = []
    for _ in range(REQUESTS):
        began = perf_counter()
        act()
        times.append(perf_counter() - began)
    return statistics.median(times) * 1e3


def _sample(
    server: Server, client: Client, directory: Path, churn_hours: int, hours: float
) -> Sample:
    pods = client.request("GET", _PODS)
    return Sample(
        churn_hours=churn_hours,
        hours=round(hours, 2),
        memory_mib=round(server.resident_mib(), 1),
        descriptors=len(list(Path(f"/proc/{server.pid}/fd").iterdir())),
        get_ms=round(_median_ms(lambda: client.request("GET", "/api/v1/nodes/node-5")), 2),
        list_ms=round(_median_ms(lambda: client.request("GET", f"{_PODS}?limit=100")), 2),
        write_ms=round(_median_ms(lambda: _virtual_now(client)) / 2, 2),
        files_mib=round(sum(one.stat().st_size for one in directory.iterdir()) / 2**20, 2),
        objects=len(pods["items"]),
        version=int(pods["metadata"]["resourceVersion"]),
        cpu_s=round(server.cpu_s(), 1),
    )


def run(server: Server, directory: Path, hours: int, speed: float) -> list[Sample]:
    """Keep the cluster busy for `hours` of virtual time; return a sample for each hour."""
    client, samples = Client(server.address), list[Sample]()
    churn = Churn(client, seed=1)
    churn.begin()
    start = _virtual_now(client)
    step_s = 3_600 / STEPS_PER_HOUR
    console = Console(stderr=True)
    for step in range(1, hours * STEPS_PER_HOUR + 1):
        while (early := start + step * step_s - _virtual_now(client)) > 0:
            sleep(early / speed + 0.05)
        churn.step()
        if step % STEPS_PER_HOUR == 0:
            passed = (_virtual_now(client) - start) / 3_600
            number = step // STEPS_PER_HOUR
            samples.append(_sample(server, client, directory, number, passed))
            console.print(samples[-1])
    return samples


def figures(samples: Sequence[Sample]) -> list[Figure]:
    """Return the growth of each measured value after the warm-up, and the CPU time.

    The growth of memory is a regression slope. The growth of other values compares the second half
    after the warm-up with the first half.
    """
    steady = samples[len(samples) // 4 :]
    half = len(steady) // 2
    hours = [one.churn_hours for one in steady]
    growth = statistics.linear_regression(hours, [one.memory_mib for one in steady]).slope

    def ratio(of: Callable[[Sample], float]) -> float:
        first, last = steady[:half], steady[half:]
        return statistics.median(map(of, last)) / statistics.median(map(of, first))

    more = max(one.descriptors for one in steady[half:]) - max(
        one.descriptors for one in steady[:half]
    )
    return [
        Figure(
            what="memory after warm-up, growth per virtual hour of churn",
            value=growth,
            unit="MiB",
            target=GROWTH_MIB_PER_HOUR,
            note=f"{steady[0].memory_mib} to {steady[-1].memory_mib} MiB",
        ),
        Figure(
            what="descriptors, second half against first",
            value=more,
            unit="more",
            target=0,
            note=f"{steady[-1].descriptors} at the end",
        ),
        Figure(what="GET of a node", value=ratio(lambda one: one.get_ms), unit="times", target=1.5),
        Figure(
            what="LIST of 100 pods", value=ratio(lambda one: one.list_ms), unit="times", target=1.5
        ),
        Figure(what="write", value=ratio(lambda one: one.write_ms), unit="times", target=1.5),
        Figure(
            what="files of the store",
            value=ratio(lambda one: one.files_mib),
            unit="times",
            target=1.5,
            note=f"{steady[-1].files_mib} MiB after {steady[-1].version:,} versions",
        ),
        Figure(what="CPU per virtual hour", value=samples[-1].cpu_s / samples[-1].hours, unit="s"),
    ]


def main() -> int:
    """Run the benchmark; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=int, default=24, choices=range(8, 1000), metavar="HOURS")
    parser.add_argument("--speed", type=float, default=144)
    parser.add_argument("--out", type=Path, help="a file for the samples, as CSV")
    wanted = parser.parse_args()
    command = (*UP, "--nodes", str(NODES), "--zones", "3", "--speed", f"{wanted.speed:g}")
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        with serving(command, directory) as server:
            samples = run(server, directory, wanted.hours, wanted.speed)
    if wanted.out is not None:
        with wanted.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(asdict(samples[0])), lineterminator="\n")
            writer.writeheader()
            writer.writerows(asdict(one) for one in samples)
    found = figures(samples)
    Console(width=WIDTH).print(table(found))
    return 0 if all(one.holds for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
