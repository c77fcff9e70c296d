"""Measures reads: in this process without HTTP, over HTTP, and over HTTPS."""

from __future__ import annotations

from functools import partial
from time import time_ns
from typing import Final

import uvloop

from api_cost.clients import ask_all
from api_cost.figure import Figure, Figures, cpu_s
from api_cost.manifest import PODS, posted_pod, running_pod
from api_cost.process import Server
from fairlead import __version__
from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.endpoints.server import ApiServer
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import Request, Response
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.worlds.local.random_ids import RandomIds

PODS_LISTED: Final = 5_000
PODS_OF_LARGE_LIST: Final = 50_000
GETS: Final = 10_000
PODS_CREATED: Final = 1_000
LISTS: Final = 5
CONNECTIONS: Final = 64
_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def in_process() -> Figures:
    """Measure a GET of a pod, and LISTs of 5,000 pods and of 50,000 pods.

    The LIST of 5,000 pods is measured for the first time, repeated, with selectors, and as a Table.
    """
    storage = CompactStorage()
    store = Store(RandomIds(), storage=storage)
    server = complete_server(store, clock=time_ns, address="127.0.0.1:6443", version=__version__)
    for number in range(PODS_LISTED):
        storage.put(POD, running_pod(number))
    path = "/api/v1/namespaces/team-7/pods/web-000007"
    spent = cpu_s(lambda: _body(server, path), 2_000)
    yield Figure(what="GET of a pod", value=spent * 1e6, unit="µs CPU", target=60)
    first = cpu_s(lambda: _body(server, "/api/v1/pods"), 1, rounds=1)
    size = f"{_body(server, '/api/v1/pods') / 1e6:.1f} MB; {first * 1e3:.0f} ms the first time"
    spent = cpu_s(lambda: _body(server, "/api/v1/pods"), LISTS)
    what = f"LIST of {PODS_LISTED:,} pods"
    yield Figure(what=what, value=spent * 1e3, unit="ms CPU", target=60, note=size)
    for about, query in (
        ("labelSelector app=web (half)", ("labelSelector", "app=web")),
        ("fieldSelector spec.nodeName (1)", ("fieldSelector", "spec.nodeName=node-7")),
    ):
        spent = cpu_s(partial(_body, server, "/api/v1/pods", query), LISTS)
        yield Figure(what=f"the same, {about}", value=spent * 1e3, unit="ms CPU")
    spent = cpu_s(lambda: _body(server, "/api/v1/pods", accept=_TABLE), LISTS)
    yield Figure(what="the same, as a Table for kubectl", value=spent * 1e3, unit="ms CPU")
    for number in range(PODS_LISTED, PODS_OF_LARGE_LIST):
        storage.put(POD, running_pod(number))
    spent = cpu_s(lambda: _body(server, "/api/v1/pods"), 1)
    what = f"LIST of {PODS_OF_LARGE_LIST:,} pods"
    yield Figure(what=what, value=spent, unit="s CPU", target=0.5)


def _body(
    server: ApiServer, path: str, *query: tuple[str, str], accept: str = "application/json"
) -> int:
    """Return the length of the answer to a GET of `path`, in bytes."""
    answer = server.handle(Request("GET", path, query, {"accept": accept}), time_ns())
    assert isinstance(answer, Response)
    assert answer.status == 200
    return sum(map(len, answer.body))


def over_http(server: Server) -> Figures:
    """Create pods in an empty server, and measure GETs of pods without TLS."""
    pods = [server.address.request("POST", PODS, posted_pod(at)) for at in range(PODS_CREATED)]
    assert uvloop.run(ask_all(server.address, pods, CONNECTIONS)) == {b"201": PODS_CREATED}
    yield Figure(what="GET of a pod over HTTP", value=_get_us(server), unit="µs CPU", target=60)


def over_https(server: Server) -> Figures:
    """Measure GETs of pods and LISTs of all pods of a server that already has pods."""
    address = server.address
    yield Figure(what="GET of a pod over HTTPS", value=_get_us(server), unit="µs CPU")
    before = server.cpu_s()
    statuses = uvloop.run(ask_all(address, [address.request("GET", PODS)] * LISTS, 1))
    spent = (server.cpu_s() - before) / LISTS
    assert statuses == {b"200": LISTS}
    yield Figure(what="LIST of all pods over HTTPS", value=spent * 1e3, unit="ms CPU")


def _get_us(server: Server) -> float:
    """Return the server's CPU time for a GET of a pod in µs.

    This includes a share of the time to open CONNECTIONS connections for GETS requests.
    """
    paths = (f"{PODS}/web-{number % PODS_CREATED}" for number in range(GETS))
    requests = [server.address.request("GET", path) for path in paths]
    before = server.cpu_s()
    statuses = uvloop.run(ask_all(server.address, requests, CONNECTIONS))
    assert statuses == {b"200": GETS}
    return (server.cpu_s() - before) / GETS * 1e6
