"""API servers that send too much or too slowly are refused in one line."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager

import pytest

from fairlead.api.timestamp import format_timestamp
from fairlead.client.connection import ConnectionConfig
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.live import live_snapshot
from fairlead.whatif.snapshot.live.live_snapshot import read_live
from fairlead.whatif.snapshot.snapshot import parse_snapshot

VERSION = {"resourceVersion": "7"}
EMPTY = {"metadata": VERSION, "items": []}
NODES = [{"metadata": {"name": f"node-{number}"}} for number in range(100)]


def response(body: bytes) -> bytes:
    """Return the response of an API server with a whole body."""
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def send_nodes(path, writer):
    items = NODES if "/nodes" in path else []
    writer.write(response(json.dumps({**EMPTY, "items": items}).encode()))


async def send_spaces(_path, writer):
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"400\r\n" + b" " * 0x400 + b"\r\n")
        await writer.drain()


async def send_slowly(_path, writer):
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\n \r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


@contextmanager
def serving(send):
    """Yield the connection to an API server that responds with `send`."""
    ready, found = threading.Event(), {}

    async def handle(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await send(head.split()[1].decode(), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def serve():
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        found["stop"], found["loop"] = asyncio.Event(), asyncio.get_running_loop()
        found["port"] = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await found["stop"].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        server = f"http://127.0.0.1:{found['port']}"
        yield ConnectionConfig(name="context prod", server=server)
    finally:
        found["loop"].call_soon_threadsafe(found["stop"].set)
        thread.join()


def test_a_cluster_within_the_limit_is_read():
    with serving(send_nodes) as connection:
        assert len(read_live(connection, bytes_max=100_000)) == len(NODES)


@pytest.mark.parametrize("send", [send_spaces, send_nodes], ids=["endless answer", "large cluster"])
def test_a_server_that_sends_too_much_is_refused(send):
    with serving(send) as connection, pytest.raises(InputError) as refusal:
        read_live(connection, bytes_max=1_000)
    problem = "sends more than 1,000 bytes; --max-input raises the limit"
    assert str(refusal.value) == f"context prod: {connection.server}: {problem}"


def test_a_server_that_never_ends_its_answer_is_refused(monkeypatch):
    monkeypatch.setattr(live_snapshot, "READ_SECONDS_MAX", 0.2)
    with serving(send_slowly) as connection, pytest.raises(InputError) as refusal:
        read_live(connection)
    assert "the cluster could not be read within" in str(refusal.value)


@pytest.mark.parametrize("body", [{"items": []}, {"items": None, "metadata": {}}])
def test_other_json_does_not_count_as_an_empty_cluster(body):
    """A list of stored objects always has a resourceVersion."""

    async def send(_path, writer):
        writer.write(response(json.dumps(body).encode()))

    with serving(send) as connection, pytest.raises(InputError) as refusal:
        read_live(connection)
    problem = "/api/v1/nodes: the answer is not a list of Kubernetes objects (it has neither items"
    assert problem in str(refusal.value)


def test_an_object_that_the_server_lists_twice_is_refused():
    """No command could read a snapshot file with both."""

    async def send(path, writer):
        items = [NODES[0], NODES[1], NODES[0]] if "/nodes" in path else []
        writer.write(response(json.dumps({**EMPTY, "items": items}).encode()))

    with serving(send) as connection:
        live = read_live(connection)
    with pytest.raises(InputError) as refusal:
        live.refuse_duplicates()
    assert str(refusal.value) == "context prod: Node node-0: the server lists it twice"


@pytest.mark.parametrize("item", [{"metadata": None}, {"metadata": {"name": 5}}])
def test_an_object_without_valid_metadata_is_refused(item):
    """Such an object is bad input, not a bug."""

    async def send(path, writer):
        items = [item] if "/nodes" in path else []
        writer.write(response(json.dumps({**EMPTY, "items": items}).encode()))

    with serving(send) as connection:
        live = read_live(connection)
    with pytest.raises(InputError) as refusal:
        live.refuse_duplicates()
    assert str(refusal.value).startswith(
        "context prod: Node: the server lists an invalid object: Expected"
    )


DATE = "Date: Sun, 22 Nov 2026 23:00:00 GMT\r\n"
CLUSTER_TIME = "Fairlead-Time: Mon, 23 Nov 2026 00:00:00 GMT\r\n"


@pytest.mark.parametrize(
    ("headers", "taken_at"),
    [(DATE, "2026-11-22T23:00:00Z"), (DATE + CLUSTER_TIME, "2026-11-23T00:00:00Z")],
)
def test_a_snapshot_has_the_time_of_the_cluster(headers, taken_at):
    async def send(_path, writer):
        head, _, body = response(json.dumps(EMPTY).encode()).partition(b"\r\n")
        writer.write(head + b"\r\n" + headers.encode() + body)

    with serving(send) as connection:
        assert format_timestamp(read_live(connection).taken_at) == taken_at


@pytest.mark.parametrize(
    ("is_allowed", "unreadable"), [(True, []), (False, ["configmaps"])], ids=["allowed", "refused"]
)
def test_of_config_maps_only_the_status_of_cluster_autoscaler_is_read(is_allowed, unreadable):
    """A Role with the resource name allows a list of the objects with this name."""
    asked = []
    status = {"metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"}}

    async def send(path, writer):
        if "configmaps" not in path:
            body, code = {**EMPTY, "resources": [{"name": "configmaps"}]}, "200 OK"
        else:
            asked.append(path)
            body, code = {"items": [status]}, "200 OK" if is_allowed else "403 Forbidden"
        text = json.dumps(body)
        writer.write(f"HTTP/1.1 {code}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())

    with serving(send) as connection:
        found = read_live(connection)
    [path] = asked
    assert path.startswith("/api/v1/namespaces/kube-system/configmaps?")
    assert "fieldSelector=metadata.name%3Dcluster-autoscaler-status" in path
    assert (len(found), found.unreadable_resources()) == (int(is_allowed), unreadable)


async def send_as_1_20(path, writer):
    """Only v2beta1 of HorizontalPodAutoscalers is served, and no resource.k8s.io and no CRDs."""
    group = {"versions": [{"version": "v2beta1"}]}
    answers = {
        "/apis/autoscaling": group,
        "/apis/autoscaling/v2beta1": {"resources": [{"name": "horizontalpodautoscalers"}]},
        "/apis/scheduling.k8s.io": {"versions": [{"version": "v1"}]},
        "/apis/scheduling.k8s.io/v1": {"resources": [{"name": "priorityclasses"}]},
        "/apis/karpenter.sh": ["nonsense"],
    }
    served = path.startswith(("/api/v1/", "/apis/apps/v1/"))
    body = EMPTY if served else answers.get(path)
    if body is None:
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
    else:
        writer.write(response(json.dumps(body).encode()))


def test_a_resource_that_is_served_in_another_version_is_unreadable():
    """Otherwise, an answer would assume that there are no such objects."""

    async def send(path, writer):
        await send_as_1_20(path.partition("?")[0], writer)

    with serving(send) as connection:
        found = read_live(connection)
    assert found.unreadable_resources() == ["horizontalpodautoscalers.autoscaling"]


CLAIM = {"metadata": {"name": "gpu", "namespace": "default"}, "spec": {"devices": {"requests": []}}}


@pytest.mark.parametrize(
    ("root", "version", "plural", "item", "kind"),
    [
        ("/apis/resource.k8s.io", "v1beta1", "resourceclaims", CLAIM, "ResourceClaim"),
        ("/apis/resource.k8s.io", "v1beta2", "resourceclaims", CLAIM, "ResourceClaim"),
        ("/apis/policy", "v1beta1", "poddisruptionbudgets", CLAIM, "PodDisruptionBudget"),
    ],
)
@pytest.mark.parametrize("decode", [False, True])
def test_the_version_that_the_cluster_serves_is_read(root, version, plural, item, kind, decode):
    """Kubernetes 1.32 serves v1beta1 of resource.k8s.io, and 1.33 also v1beta2."""
    answers = {
        root: {"versions": [{"version": "v1alpha3"}, {"version": version}]},
        f"{root}/v1alpha3": {"resources": [{"name": plural}]},
        f"{root}/{version}": {"resources": [{"name": plural}]},
        f"{root}/{version}/{plural}": {"items": [item]},
        "/api/v1/nodes": {"items": NODES[:1]},
    }

    async def send(path, writer):
        path = path.partition("?")[0]
        is_other = path not in answers and path.startswith(("/api/v1/", "/apis/apps/"))
        body = EMPTY if is_other else answers.get(path)
        if body is None:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        else:
            writer.write(response(json.dumps(body).encode()))

    with serving(send) as connection:
        found = read_live(connection, decode=decode)
    assert found.unreadable_resources() == []
    [_, one] = map(json.loads, found.texts())
    api_version = f"{root.removeprefix('/apis/')}/{version}"
    assert (one["apiVersion"], one["kind"]) == (api_version, kind)
    [_, manifest] = parse_snapshot("dump.json", found.encoded()).manifests
    assert manifest.kind.version == "v1"


async def send_forbidden(path, writer):
    """All authenticated users may read the discovery documents, but not the objects."""
    discovery = {
        "/apis/policy/v1": {"resources": [{"name": "poddisruptionbudgets"}]},
        "/apis/batch/v1": ["nonsense"],
        "/apis/karpenter.sh/v1": {"resources": [{"name": "nodepools"}]},
    }
    if path.startswith(("/api/v1/", "/apis/apps/v1/")):
        body, status = EMPTY, "200 OK"
    elif path == "/apis/kueue.x-k8s.io/v1beta1/workloads":
        body, status = {"message": "conversion webhook failed"}, "500 Internal Server Error"
    elif path in discovery:
        body, status = discovery[path], "200 OK"
    elif path.count("/") == 4:
        body, status = {}, "403 Forbidden"
    else:
        body, status = {}, "404 Not Found"
    text = json.dumps(body)
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())


def test_a_resource_is_forbidden_only_if_the_server_serves_it():
    """An API server forbids requests for resources without a CustomResourceDefinition, too."""

    async def send(path, writer):
        await send_forbidden(path.partition("?")[0], writer)

    with serving(send) as connection:
        found = read_live(connection)
    assert found.unreadable_resources() == [
        "poddisruptionbudgets.policy",
        "jobs.batch",
        "cronjobs.batch",
        "nodepools.karpenter.sh",
        "workloads.kueue.x-k8s.io",
    ]
