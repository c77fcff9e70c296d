"""Errors that end a replica, and errors that are only reported; the API server is scripted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from fairlead.api.quantity import NO_QUANTITY
from fairlead.client.connection import ConnectionConfig
from fairlead.client.leader_election import ElectionConfig
from fairlead.engine.core.command import Bind, IssuedCommand, ObjectRef
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.issuer import API_SERVER
from fairlead.engine.state.cluster import Cluster
from fairlead.worlds.cluster import runner as runner_module
from fairlead.worlds.cluster.resource import (
    BATCH,
    SCHEDULER,
    TAINT_EVICTION,
    watched_resources,
)
from fairlead.worlds.cluster.runner import ClusterRunner, RunnerOptions
from fairlead.worlds.cluster.telemetry.run_log import RunLog

UNENCODABLE: Any = object()
BROKEN = IssuedCommand(Bind(ObjectRef("Pod", "shop", "web-0", "u-1"), UNENCODABLE), API_SERVER)


class Deciding:
    """An engine that returns `commands` for its first stimulus, or fails."""

    def __init__(self, commands):
        self.cluster = Cluster()
        self._commands = commands

    def handle(self, _stimulus, _now):
        if self._commands is None:
            raise RuntimeError("of the engine")
        return self._commands

    def next_deadline(self):
        return None

    def handle_deadline(self, _now):
        return ()


BOOKMARK = '{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1"}}}\n'


async def empty_cluster(request):
    """Lists are empty, and nothing changes."""
    if "sendInitialEvents" in request.query:
        return web.Response(status=400)
    if "watch" in request.query:
        await asyncio.sleep(0.02)
        return web.Response(text=BOOKMARK)  # a watch without a line would count as failed
    return web.json_response({"items": [], "metadata": {"resourceVersion": "1"}})


def starting_again(lines):
    """Returns an empty cluster that refuses a watch of pods, as before its roles are loaded.

    It then refuses all requests for pods until the runner has logged this in `lines`.
    """
    refused = []

    async def handle(request):
        is_watch = "watch" in request.query and "resourceVersion" in request.query
        if request.path == "/api/v1/pods" and not lines and (refused or is_watch):
            refused.append(request)
            return web.json_response({"reason": "Forbidden"}, status=403)
        return await empty_cluster(request)

    return handle


async def run(
    commands, lines, handler=empty_cluster, controllers=(TAINT_EVICTION,), until="", **more
):
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    server = web.AppRunner(app, shutdown_timeout=0)
    await server.setup()
    try:
        site = web.TCPSite(server, "127.0.0.1", 0)
        await site.start()
        config = ConnectionConfig(name="fake", server=f"http://127.0.0.1:{server.addresses[0][1]}")

        def write(entry, _now):
            lines.append(entry.message)
            if until and until in entry.message:
                runner.stop()

        resources = watched_resources(controllers)
        options = RunnerOptions(
            config=config,
            resources=resources,
            build=lambda _: Deciding(commands),
            log=RunLog(write, lambda: 0),
            quiet_seconds=0.1,
            on_start=lambda _: runner.stop() if until == "start" else None,
            **more,
        )
        runner = ClusterRunner(options)
        async with asyncio.timeout(60):
            return await runner.run()
    finally:
        await server.cleanup()


@pytest.mark.parametrize(
    ("commands", "problem"),
    [
        pytest.param(None, "internal error: RuntimeError: of the engine", id="in the engine"),
        pytest.param([BROKEN], "internal error: TypeError", id="in a request"),
    ],
)
def test_a_defect_ends_the_run_with_a_traceback(commands, problem):
    lines = []
    assert asyncio.run(run(commands, lines)).startswith(problem)
    assert lines[0].startswith("Traceback")


def test_a_restart_of_the_server_does_not_end_the_run():
    lines = []
    again = "pods can be read again"
    assert asyncio.run(run([], lines, starting_again(lines), until=again)) == ""
    assert lines == ["pods cannot be read (status 403); the known objects are used", again]


def forbidding(*resources):
    """Returns an empty cluster that forbids its user to read `resources`."""

    async def handle(request):
        if request.path.rpartition("/")[2] in resources:
            return web.json_response({"reason": "Forbidden"}, status=403)
        return await empty_cluster(request)

    return handle


HINT = "fairlead run --rbac, with the other options of this command, prints the roles"


def test_missing_permissions_are_followed_once_by_the_command_that_prints_the_roles():
    lines, without = [], forbidding("poddisruptionbudgets", "services", "replicasets")
    controllers = (SCHEDULER,)
    asyncio.run(run([], lines, without, until="start", controllers=controllers))
    missing = [one for one in lines if one.startswith("no permission to read ")]
    assert len(missing) == 3
    assert [one.startswith(HINT) for one in lines if one not in missing] == [True]
    assert lines[1].startswith(HINT)


def test_a_run_that_may_not_read_nodes_ends_with_the_command_that_prints_the_roles():
    found = asyncio.run(run([], [], forbidding("nodes")))
    assert found.startswith(f"no permission to read nodes; {HINT}")


def electing(events):
    """Returns an empty cluster that stores the Lease, and appends each new event to `events`."""

    async def handle(request):
        if request.method == "GET" and "/leases/" in request.path:
            return web.Response(status=404)
        if request.method == "GET":
            return await empty_cluster(request)
        body = await request.json()
        if body["kind"] == "Event":
            events.append(body)
        body["metadata"] |= {"uid": "u-lease", "resourceVersion": "1"}
        return web.json_response(body)

    return handle


def test_changes_of_leadership_are_events_about_the_lease():
    """As those that `kubectl describe lease` shows for kube-scheduler."""
    events = []
    elects = {"election": ElectionConfig(identity="host_1"), "component": "own", "host": "host"}
    assert asyncio.run(run([], [], electing(events), until="start", **elects)) == ""
    # The requests are on different connections, so they can arrive in either order.
    first, last = sorted(events, key=lambda one: one["message"])
    assert (first["message"], last["message"]) == ("host_1 became leader", "host_1 stopped leading")
    assert (first["reason"], first["source"]) == ("LeaderElection", {"component": "own"})
    assert first["metadata"]["namespace"] == "kube-system"
    assert first["involvedObject"] == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "namespace": "kube-system",
        "name": "kube-scheduler",
        "uid": "u-lease",
    }


def test_a_replica_that_cannot_list_does_not_take_the_lease():
    """As kube-scheduler, which first waits until its informers have synced."""
    paths = []

    async def handle(request):
        paths.append(request.path)
        return web.Response(status=503) if request.path == "/api/v1/pods" else await store(request)

    store, election = electing([]), ElectionConfig(identity="host_1")
    assert asyncio.run(run([], [], handle, until="pods cannot be read", election=election)) == ""
    assert "/api/v1/pods" in paths
    assert not [path for path in paths if "/leases" in path]


def test_a_server_that_does_not_find_pods_is_waited_for():
    """A load balancer without an API server behind it may answer with status 404."""
    paths, lines = [], []

    async def handle(request):
        paths.append(request.path)
        return web.Response(status=404) if request.path == "/api/v1/pods" else await store(request)

    store, election = electing([]), ElectionConfig(identity="host_1")
    assert asyncio.run(run([], lines, handle, until="pods cannot be read", election=election)) == ""
    assert lines == ["pods cannot be read (status 404); trying again"]
    assert not [path for path in paths if "/leases" in path]


async def without_kubernetes(_request):
    return web.Response(text="<html>Welcome</html>")


def test_a_server_that_is_not_kubernetes_is_reported():
    lines = []
    again = "cannot be read"
    assert asyncio.run(run([], lines, without_kubernetes, until=again)) == ""
    problem = "the answer is not a list of Kubernetes objects"
    assert f"cannot be read ({problem}); trying again" in lines[0]


async def too_much(request):
    if "watch" in request.query:
        return web.Response(status=400)
    return web.Response(text=" " * 2_000)


def test_a_response_that_is_too_long_is_reported(monkeypatch):
    monkeypatch.setattr(runner_module, "_RESPONSE_BYTES_MAX", 1_000)
    lines = []
    assert asyncio.run(run([], lines, too_much, until="cannot be read")) == ""
    assert "the answer has more than 0 MiB" in lines[0]


async def of_another_version(request):
    """An empty cluster that serves neither budgets nor custom resources."""
    if request.path.startswith(("/apis/policy/", "/apis/scheduling.volcano.sh/")):
        return web.Response(status=404)
    return await empty_cluster(request)


def test_unserved_built_in_resources_are_reported_once():
    lines = []
    ignored = "so decisions do not take them into account"
    absent = f"the server does not serve poddisruptionbudgets (policy/v1), {ignored}"
    asyncio.run(run([], lines, of_another_version, (SCHEDULER, BATCH), until=absent))
    assert lines == [absent]


def with_odd_pods(count, spec=None):
    """Returns a cluster with pods that cannot be decoded."""
    odd = {"spec": spec or {"nodeName": 7}}
    pods = [{"metadata": {"name": f"p{at}", "namespace": "d"}, **odd} for at in range(count)]

    async def handle(request):
        if request.path == "/api/v1/pods" and "watch" not in request.query:
            return web.json_response({"items": pods, "metadata": {"resourceVersion": "1"}})
        return await empty_cluster(request)

    return handle


def test_an_object_that_cannot_be_decoded_is_reported_once():
    lines = []
    line = "pods d/p0 cannot be decoded (spec.nodeName: Expected `str`, got `int`): left out"
    assert asyncio.run(run([], lines, with_odd_pods(1), until="p0")) == ""
    assert lines == [line]


def test_an_invalid_quantity_is_reported_once_and_does_not_end_the_run():
    lines = []
    odd = with_odd_pods(1, {"overhead": {"cpu": "1 core"}})
    assert asyncio.run(run([], lines, odd, until="p0")) == ""
    problem = f"spec.overhead[cpu]: '1 core': {NO_QUANTITY}"
    assert lines == [f"pods d/p0 cannot be decoded ({problem}): left out"]


def test_only_some_of_many_undecodable_objects_are_reported():
    lines = []
    more = "pods: more objects cannot be decoded"
    assert asyncio.run(run([], lines, with_odd_pods(1_000), until=more)) == ""
    assert len(lines) == runner_module.UNDECODABLE_NAMED + 1


class Loop:
    """An event loop that keeps its timers instead of running them."""

    def __init__(self):
        self.calls = []

    def call_later(self, wait_s, call, *_):
        self.calls.append((wait_s, call))
        return Timer(self.calls, self.calls[-1])

    def call_soon(self, call, *_):
        return self.call_later(0, call)


class Timer:
    """A timer of `Loop`."""

    def __init__(self, calls, call):
        self._calls, self._call = calls, call

    def cancel(self):
        self._calls.remove(self._call)


@pytest.fixture
def loop(monkeypatch):
    made = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: made)
    return made


@pytest.fixture
def stopwatch(monkeypatch):
    """The seconds that the runner's stopwatch shows, in a list."""
    shown = [100.0]
    monkeypatch.setattr(runner_module, "perf_counter", lambda: shown[0])
    return shown


@pytest.fixture
def runner():
    config = ConnectionConfig(name="fake", server="http://127.0.0.1:1")
    made = ClusterRunner(RunnerOptions(config=config, resources=(), build=lambda _: Deciding(())))
    made.clock = Stopped()
    return made


class Stopped:
    """A clock that is stopped."""

    def now(self):
        return 0

    def seconds_until(self, due):
        return due / seconds(1)


def step(loop):
    """Run the only timer."""
    ((_, call),) = loop.calls
    loop.calls.clear()
    call()


@pytest.mark.parametrize(
    ("elapsed_ms", "wait_ms"),
    [
        pytest.param(0, 2, id="directly after a step"),
        pytest.param(0.5, 1.5, id="soon after a step"),
        pytest.param(3, 0, id="long after a step"),
    ],
)
def test_steps_are_at_least_two_milliseconds_apart(runner, loop, stopwatch, elapsed_ms, wait_ms):
    runner.wake()
    step(loop)
    stopwatch[0] += elapsed_ms / 1000
    runner.wake()
    assert [wait * 1000 for wait, _ in loop.calls] == [pytest.approx(wait_ms)]


def test_a_step_handles_everything_received_before_it(runner, loop, stopwatch):
    runner.wake()
    runner.wake()
    assert len(loop.calls) == 1
    step(loop)
    runner.wake()
    assert len(loop.calls) == 1


@pytest.mark.parametrize(
    ("dues", "waits"),
    [
        pytest.param((5,), [5], id="one"),
        pytest.param((5, 3), [3], id="an earlier one replaces the timer"),
        pytest.param((3, 5), [3], id="a later one keeps it"),
    ],
)
def test_the_engine_is_woken_at_the_earliest_due_time(runner, loop, stopwatch, dues, waits):
    for due in dues:
        runner._wake_at(seconds(due))
    assert [wait for wait, _ in loop.calls] == waits


def test_each_due_time_leads_to_a_step(runner, loop, stopwatch):
    runner._wake_at(seconds(3))
    step(loop)  # the timer
    assert [call for _, call in loop.calls] == [runner._step]
    step(loop)
    runner._wake_at(seconds(4))
    assert [wait for wait, _ in loop.calls] == [4]
