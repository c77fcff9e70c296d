"""Schemathesis over the OpenAPI v3 documents that a server serves.

Every run covers all group versions. Each operation gets a few generated requests; some operations,
selected by the run's seed, get all requests that Schemathesis can generate.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from random import Random  # noqa: TID251 - random numbers from the run's seed
from typing import Any, Final

from tests.fuzz.served import Served

HERE: Final = Path(__file__).parent
RECORDED: Final = HERE.parent / "unit/apiserver/protobuf/recorded_bodies.jsonl.gz"
SLOW_SECONDS: Final = 2.0
SECONDS_PER_OPERATION: Final = 3.0
METHODS: Final = ("get", "put", "post", "patch", "delete")
CHECKS: Final = ("no_failure_of_its_own", "as_documented")
_DOORS: Final = (
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicybindings",
)
_COUNTED: Final = re.compile(r"(\d+) generated")


@dataclass(frozen=True)
class Visit:
    """One run over one document: the number of `requests`, and the messages of a failure."""

    document: str
    requests: int
    problem: str


def documents(server: Served) -> dict[str, list[str]]:
    """Return the operations by path of each document that has operations."""
    found = {}
    for name in server.ask("GET", "/openapi/v3")[1]["paths"]:
        paths = server.ask("GET", f"/openapi/v3/{name}")[1].get("paths", {})
        operations = [
            operation["operationId"]
            for path, methods in paths.items()
            for method, operation in methods.items()
            if method in METHODS and "/watch/" not in path
        ]
        if len(operations) > 1:  # groups have only a list of their versions
            found[name] = sorted(operations)
    return found


def put_some(server: Served) -> None:
    """Create an object of each recorded kind, so that requests find objects."""
    known = resources(server)
    plurals = {row["kind"]: f"{root}/{{}}{row['name']}" for root, row in known}
    namespaced = {row["kind"] for _, row in known if row["namespaced"]}
    for line in gzip.decompress(RECORDED.read_bytes()).splitlines():
        obj = json.loads(line)["object"]
        if obj["kind"] in plurals and "Review" not in obj["kind"]:
            within = "namespaces/default/" if obj["kind"] in namespaced else ""
            named = {**obj, "metadata": {"name": "a", "labels": {"a": "b"}}}
            server.ask("POST", plurals[obj["kind"]].format(within), named)


def open_doors(server: Served) -> None:
    """Delete admission objects of an earlier run, which would refuse all writes."""
    for name in _DOORS:
        server.ask("DELETE", f"/apis/admissionregistration.k8s.io/v1/{name}")


def resources(server: Served) -> list[tuple[str, dict[str, Any]]]:
    """Return every resource that can be created, by the path of its group version."""
    roots = [f"/{name}" for name in server.ask("GET", "/openapi/v3")[1]["paths"]]
    lists = [(root, server.ask("GET", root)) for root in roots if root.count("/") > 1]
    return [
        (root, row)
        for root, (status, found) in lists
        if status == 200 and found.get("kind") == "APIResourceList"
        for row in found["resources"]
        if "/" not in row["name"] and "create" in row["verbs"]
    ]


def visit(server: Served, name: str, operations: list[str], seconds: float, seed: int) -> Visit:
    """Send requests for one document during `seconds`; none if its API has been deleted."""
    if server.ask("GET", f"/openapi/v3/{name}")[0] == HTTPStatus.NOT_FOUND:
        return Visit(name, 0, "")
    open_doors(server)
    put_some(server)
    share = max(2.0, seconds / 2)
    some = Random(seed).sample(operations, min(len(operations), max(1, round(share / 3))))
    every = max(1, min(50, round(share / SECONDS_PER_OPERATION * 60 / len(operations))))
    fuzzed = _run(server, name, share, seed, ["--phases=fuzzing", f"--max-examples={every}"])
    chosen = [f"--include-operation-id={one}" for one in some]
    covered = _run(server, name, share, seed, ["--phases=coverage,stateful", *chosen])
    problem = f"{fuzzed.problem}\n{covered.problem}".strip()
    return Visit(name, fuzzed.requests + covered.requests, problem)


def _run(server: Served, name: str, seconds: float, seed: int, more: list[str]) -> Visit:
    command = [
        str(Path(sys.executable).with_name("st")),
        "--no-color",
        "run",
        f"{server.url}/openapi/v3/{name}",
        f"--tls-verify={server.authority}",
        f"--header=Authorization: Bearer {server.token}",
        f"--checks={','.join(CHECKS)}",
        f"--max-time={max(1, round(seconds))}",
        f"--max-response-time={SLOW_SECONDS}",
        f"--seed={seed}",
        "--request-timeout=20",
        "--continue-on-failure",
        "--no-shrink",
        "--warnings=off",
        "--suppress-health-check=all",
        "--exclude-path-regex=/watch/",
        *more,
    ]
    environment = os.environ | {"SCHEMATHESIS_HOOKS": "tests.fuzz.schemathesis_hooks"}
    root = HERE.parent.parent
    done = subprocess.run(
        command, env=environment, cwd=root, capture_output=True, text=True, check=False
    )
    counted = _COUNTED.search(done.stdout)
    failed = done.returncode != 0
    return Visit(
        name, int(counted[1]) if counted else 0, done.stdout + done.stderr if failed else ""
    )


def leave_nothing(server: Served) -> None:
    """Delete everything that a run has created, including protected objects."""
    for root, row in resources(server):
        if "deletecollection" in row["verbs"]:
            _delete_all(server, root, row)


def _delete_all(server: Served, root: str, row: dict[str, Any]) -> None:
    everywhere = f"{root}/{row['name']}"
    for obj in server.ask("GET", everywhere)[1].get("items", ()):
        meta = obj["metadata"]
        if meta["name"] not in ("a", "b") and not row["namespaced"]:
            continue  # the cluster's own
        within = f"namespaces/{meta['namespace']}/" if row["namespaced"] else ""
        path = f"{root}/{within}{row['name']}/{meta['name']}"
        free = {"metadata": {"finalizers": None}}
        if meta.get("finalizers"):
            server.ask("PATCH", path, free, Content_Type="application/merge-patch+json")
        server.ask("DELETE", f"{path}?gracePeriodSeconds=0")
