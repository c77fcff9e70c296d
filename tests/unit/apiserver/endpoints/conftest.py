"""An API server with an empty store, called without a socket."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import count
from urllib.parse import parse_qsl

import pytest

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, parse_timestamp
from fairlead.apiserver.endpoints.collection.watch import Watch
from fairlead.apiserver.endpoints.compose import complete_server
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import ADMIN, Request

NOW = parse_timestamp("2026-01-01T00:00:00Z")
MERGE = "application/merge-patch+json"


class CountedIds:
    """An id source that returns uid-1, uid-2, ..."""

    def __init__(self):
        self.numbers = count(1)

    def new_uid(self, kind, namespace, name):
        return f"uid-{next(self.numbers)}"

    def new_suffix(self):
        return f"{next(self.numbers):05}"


@dataclass
class Answer:
    """A response with its body as text and as JSON."""

    response: object

    @property
    def status(self):
        return self.response.status

    @property
    def text(self):
        return b"".join(self.response.body).decode()

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def message(self):
        return self.json["message"]


class Api:
    """Sends requests to a server; each request advances the clock by one second."""

    def __init__(self, log_capacity=1000, storage=None, admission=()):
        self.now = NOW
        self.store = Store(
            CountedIds(),
            admission=admission,
            log_capacity=log_capacity,
            registry=API_SERVER,
            storage=storage,
        )
        self.server = complete_server(
            self.store, clock=lambda: self.now, address="127.0.0.1:6443", version="0"
        )

    def ask(self, method, url, body=None, *, user=ADMIN, **headers):
        """Return the response or the watch; a body that is not bytes is sent as JSON."""
        self.now += NANOSECONDS_PER_SECOND
        path, _, query = url.partition("?")
        raw = body if isinstance(body, bytes) else b"" if body is None else _encoded(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        parameters = tuple(parse_qsl(query, keep_blank_values=True))
        request = Request(method, path, parameters, named, raw, user)
        answer = self.server.handle(request, self.now)
        return answer if isinstance(answer, Watch) else Answer(answer)

    def get(self, url, **headers):
        return self.ask("GET", url, **headers)

    def post(self, url, body, **headers):
        return self.ask("POST", url, body, **headers)

    def put(self, url, body, **headers):
        return self.ask("PUT", url, body, **headers)

    def patch(self, url, body, content_type=MERGE, **headers):
        return self.ask("PATCH", url, body, content_type=content_type, **headers)

    def delete(self, url, body=None, **headers):
        return self.ask("DELETE", url, body, **headers)

    def config_map(self, name, **meta):
        """Create a ConfigMap in the namespace default."""
        body = {"metadata": {"name": name, **meta}}
        return self.post(CONFIG_MAPS, body).json


def _encoded(body):
    return (body if isinstance(body, str) else json.dumps(body)).encode()


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


def make_pod(name="a", **spec):
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


@pytest.fixture
def api():
    """A new server."""
    return Api()


@pytest.fixture
def make_api():
    """Makes further servers.

    `log_capacity` is the number of changes in the log, and `admission` are the admission plugins.
    """
    return Api


def events_of(watch):
    """Return (type, name, object) of each event that a watch has received."""
    lines = [json.loads(line) for line in b"".join(watch.pop_lines()).splitlines()]
    return [
        (line["type"], line["object"]["metadata"].get("name", ""), line["object"]) for line in lines
    ]


@pytest.fixture
def event_names():
    """Type and name of each event of a watch."""
    return lambda watch: [(kind, name) for kind, name, _ in events_of(watch)]


@pytest.fixture
def objects():
    """The object of each event of a watch."""
    return lambda watch: [obj for _, _, obj in events_of(watch)]


@pytest.fixture
def config_maps():
    """The path of the ConfigMaps of a namespace."""
    return CONFIG_MAPS


@pytest.fixture
def pods():
    """The path of the Pods of a namespace."""
    return PODS


@pytest.fixture
def pod():
    """A pod to post."""
    return make_pod
