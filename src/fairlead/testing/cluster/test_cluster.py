"""TestCluster: a whole cluster for one test: objects, clock, failures and expectations.

    def test_survives_a_lost_node(fairlead_cluster):
        fairlead_cluster.apply(deployment)
        node = fairlead_cluster.expect_running("web-0")
        fairlead_cluster.fail_node(node)
        fairlead_cluster.expect_evicted_at("web-0", "5m50s", tolerance="5s")

Other clients can use the cluster at the same time, with the kubeconfig of the cluster
(`fairlead_cluster.kubeconfig`). An expectation advances the clock until the expectation is met or
its time limit is reached (see the module `wait`). Simulated minutes take milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

from fairlead.api.json import Json
from fairlead.api.nodes.kubelet_behaviour import KUBELET, parse_kubelet_behaviour
from fairlead.api.timestamp import parse_duration
from fairlead.api.well_known_label import ZONE
from fairlead.engine.core.instant import DurationNs
from fairlead.testing.cluster.api_client import ApiClient, Body, path_of
from fairlead.testing.cluster.cluster_thread import ClusterThread
from fairlead.testing.cluster.wait import (
    PATIENCE_S_DEFAULT,
    ConditionWaiter,
    deletion_text,
    is_evicted,
    is_ready,
    is_waiting,
    node_of,
    status_text,
    why_unschedulable,
)
from fairlead.testing.refusal import hides_traceback
from fairlead.worlds.local.server.clock_control import SPEED_MAX, SPEED_MIN, SPEED_RANGE
from fairlead.worlds.local.server.runner import Runner

Objects = list[Json]
Duration = str | timedelta
Found = TypeVar("Found")

DEFAULT: Final = "default"
MANAGER: Final = "fairlead-test"
SHOWN_MAX: Final = 10  # pods in the message of a failed expectation

__tracebackhide__ = hides_traceback
Manifests = Mapping[str, Any] | Iterable[Mapping[str, Any]] | str | Path


class TestCluster:
    """A cluster with the methods that a test needs.

    Times are on the cluster's clock, except times that are called real seconds. A duration is a
    text such as "90s" or "5m", or a timedelta. Methods that take the name of a kind raise
    LookupError if the cluster does not serve it.

    `url`, `token`, `authority` (the CA certificate as PEM) and `kubeconfig` (a path) are for other
    clients.
    """

    __test__ = False  # pytest must not collect this class

    def __init__(self, thread: ClusterThread, patience_s: float = PATIENCE_S_DEFAULT) -> None:
        """Wrap the cluster of `thread`; `patience_s` is described at `start_cluster`.

        Tests get a TestCluster from the fixture `fairlead_cluster` or from
        `fairlead.testing.start_cluster`.
        """
        self._thread = thread
        self._clock = thread.cluster.clock
        self._client = ApiClient(thread)
        self._waiter = ConditionWaiter(thread, patience_s)
        self.url = thread.access.url
        self.token = thread.access.token
        self.authority = thread.access.authority
        self.kubeconfig = thread.access.kubeconfig

    # --- time ------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """Current time on the cluster's clock."""
        return datetime.fromtimestamp(self._clock.now() / 1e9, UTC)

    def advance(self, duration: Duration) -> datetime:
        """Advance the clock by `duration` and process all due events; return the new time."""
        self._thread.call(lambda runner: runner.advance(_ns(duration)))
        return self.now

    def pause(self) -> None:
        """Stop the clock; only `advance` and expectations move it."""
        self._control_clock(speed=None, paused=True)

    def resume(self, speed: float | None = None) -> None:
        """Start the clock again.

        `speed` is in simulated seconds per real second; None keeps the speed. Raises ValueError or
        TypeError for an invalid speed.
        """
        if speed is not None:
            require_speed(speed)
        self._control_clock(speed=speed, paused=False)

    def _control_clock(self, *, speed: float | None, paused: bool) -> None:
        async def steering(runner: Runner) -> None:
            runner.control(speed=speed, paused=paused)

        self._thread.call(steering)

    # --- objects ---------------------------------------------------------------------------

    def apply(self, manifests: Manifests) -> Objects:
        """Apply objects by server-side apply; return the stored objects.

        `manifests` is an object, several objects, YAML text, or the path of a YAML file. Raises
        RefusedError if the server refuses an object. Raises LookupError for a kind that is not
        served, and ValueError for an object without a name. Raises TypeError if `manifests` has
        another type, or contains something that is not an object.
        """
        return [self._apply(manifest) for manifest in manifests_of(manifests)]

    def _apply(self, manifest: Json) -> Json:
        meta = manifest.get("metadata") or {}
        if not isinstance(meta, Mapping):
            raise TypeError(f"metadata is a mapping, not {type(meta).__name__}")
        kind = self._client.kind_of(manifest)
        namespace, name = meta.get("namespace", DEFAULT), meta.get("name", "")
        path = path_of(kind, namespace, name)
        if not name:
            collection = path.removesuffix("/")
            raise ValueError(
                f"a {kind.kind} without metadata.name cannot be applied; "
                f'request("POST", "{collection}", manifest) creates it'
            )
        query = {"fieldManager": MANAGER, "force": "true"}
        return self._client.request("PATCH", path, manifest, "application/apply-patch+yaml", query)

    def get(self, kind: str, name: str, namespace: str = DEFAULT) -> Json | None:
        """Return an object by its kind (`pod`, `deploy`, `Widget`) and name; None if missing."""
        found = self._client.kind_of_object(kind, namespace, name)
        return self._client.find(found, namespace, name)

    def list(self, kind: str, namespace: str | None = DEFAULT) -> Objects:
        """Return the objects of `kind` in `namespace`; None means all namespaces."""
        return self._client.objects(self._client.kind(kind), namespace)

    def delete(self, kind: str, name: str, namespace: str = DEFAULT) -> None:
        """Delete an object, which may still exist while it terminates.

        Raises RefusedError if the server refuses the deletion.
        """
        found = self._client.kind_of_object(kind, namespace, name)
        self.request("DELETE", path_of(found, namespace, name))

    def request(self, method: str, path: str, body: Body | None = None, **query: str) -> Json:
        """Send a request as the administrator; return the JSON of the response.

        The `body` of a PATCH is a JSON patch if it is a list, otherwise a JSON merge patch. Raises
        RefusedError if the server refuses the request. Raises TypeError if the request is a watch,
        or if the response is not a JSON object.
        """
        return self._client.request(method, path, body, query=query)

    # --- failures ---------------------------------------------------------------------------

    def fail_node(self, name: str, how: str = "stopped") -> None:
        """Make a node fail; `how` is `stopped`, `paused`, `not-ready` or `slow 45s`, for example.

        fairlead.api.nodes.kubelet_behaviour describes all behaviours. Raises ValueError for an
        unknown behaviour, and RefusedError if the node does not exist.
        """
        parse_kubelet_behaviour(how)
        self._annotate(name, how)

    def restore_node(self, name: str) -> None:
        """End the failure of a node. Raises RefusedError if the node does not exist."""
        self._annotate(name, None)

    def fail_zone(self, zone: str, how: str = "stopped") -> Objects:
        """Call `fail_node` with `how` for every node of `zone`; return these nodes.

        Raises LookupError if the zone has no nodes.
        """
        nodes = self._nodes_of(zone)
        for node in nodes:
            self.fail_node(node["metadata"]["name"], how)
        return nodes

    def restore_zone(self, zone: str) -> Objects:
        """Call `restore_node` for every node of `zone`; return these nodes.

        Raises LookupError if the zone has no nodes.
        """
        nodes = self._nodes_of(zone)
        for node in nodes:
            self.restore_node(node["metadata"]["name"])
        return nodes

    def _nodes_of(self, zone: str) -> Objects:
        """Return the nodes of `zone`. Raises LookupError if there are none."""
        nodes = [
            node
            for node in self.list("node")
            if node["metadata"].get("labels", {}).get(ZONE) == zone
        ]
        if not nodes:
            known = {n["metadata"].get("labels", {}).get(ZONE, "") for n in self.list("node")}
            zones = ", ".join(sorted(known - {""})) or "none"
            raise LookupError(f"there is no zone {zone!r}; known: {zones}")
        return nodes

    def _annotate(self, node: str, how: str | None) -> None:
        patch = {"metadata": {"annotations": {KUBELET: how}}}
        path = f"/api/v1/nodes/{node}"
        self._client.request("PATCH", path, patch)

    # --- clients ---------------------------------------------------------------------------

    def expect_watched(self, kind: str, *, patience_s: float = 60.0) -> None:
        """Wait up to `patience_s` real seconds until a client watches objects of `kind`.

        Raises AssertionError if no client watches them in that time.
        """
        found = self._client.kind(kind)
        if not self._waiter.until_watched(found, patience_s):
            raise AssertionError(
                f"no client watches {found.plural} after {patience_s:g} real seconds"
            )

    # --- expectations ----------------------------------------------------------------------

    def expect(
        self, check: Callable[[], Found], within: Duration = "1m", what: str = "what was expected"
    ) -> Found:
        """Advance the clock until `check` returns a true value, and return that value.

        Raises AssertionError if `check` returns no true value in the time `within`. The message of
        the error describes the check by `what`.
        """
        found = self._waiter.wait(check, self._clock.now() + _ns(within))
        if not found:
            raise self._failure(f"{what} did not happen within {within}")
        return found

    def expect_bound(
        self, pod: str, *, node: str = "", within: Duration = "1m", namespace: str = DEFAULT
    ) -> str:
        """Expect the pod to be bound; return the name of its node.

        If `node` is given, the pod must be bound to this node. Raises AssertionError if the pod is
        not bound in the time `within`, or is bound to another node.
        """
        at = self._expect_pod(pod, namespace, node_of, within, "was not bound")
        if node and at != node:
            raise AssertionError(f"{pod} was bound to {at}, not {node}")
        return at

    def expect_running(self, pod: str, *, within: Duration = "1m", namespace: str = DEFAULT) -> str:
        """Expect the pod to be running and ready; return the name of its node.

        Raises AssertionError if the pod is not running and ready after the time `within`.
        """

        def where(found: Json) -> str:
            return node_of(found) if is_ready(found) else ""

        return self._expect_pod(pod, namespace, where, within, "does not run")

    def expect_unschedulable(
        self, pod: str, because: str = "", *, within: Duration = "1m", namespace: str = DEFAULT
    ) -> str:
        """Expect the pod to be unschedulable, with `because` in the message; return the message.

        Raises AssertionError if the pod gets no such message in the time `within`.
        """

        def why(found: Json) -> str:
            message = why_unschedulable(found)
            return message if because in message else ""

        return self._expect_pod(pod, namespace, why, within, "was not found unschedulable")

    def expect_evicted_at(
        self, pod: str, after: Duration, *, tolerance: Duration = "1s", namespace: str = DEFAULT
    ) -> None:
        """Expect the pod to be evicted after the duration `after`, plus or minus `tolerance`.

        A pod that is terminating, has failed or no longer exists counts as evicted. Raises
        AssertionError if the pod does not exist now, or is evicted earlier, later or not at all.
        """
        began = self._clock.now()
        known = self.get("pod", pod, namespace)
        if known is None:
            raise AssertionError(f"there is no pod {namespace}/{pod}")
        uid = known["metadata"]["uid"]
        limit = began + _ns(after) + _ns(tolerance)
        if not self._waiter.wait(lambda: is_evicted(self.get("pod", pod, namespace), uid), limit):
            status = status_text(self.get("pod", pod, namespace))
            raise self._failure(f"{pod} was not evicted after {after}: {status}")
        passed = self._clock.now() - began
        if passed < _ns(after) - _ns(tolerance):
            raise AssertionError(f"{pod} was evicted after {passed / 1e9:g}s, not {after}")

    def expect_gone(
        self, kind: str, name: str, *, within: Duration = "1m", namespace: str = DEFAULT
    ) -> None:
        """Expect the object to disappear from the cluster.

        Raises AssertionError if the object still exists after the time `within`.
        """
        limit = self._clock.now() + _ns(within)
        if not self._waiter.wait(lambda: self.get(kind, name, namespace) is None, limit):
            status = deletion_text(self.get(kind, name, namespace))
            raise self._failure(f"{kind} {name} was not gone within {within}: {status}")

    def expect_event(self, reason: str, about: str, *, within: Duration = "1m") -> Json:
        """Expect an Event with `reason` about the object named `about`.

        Returns the Event that was written last; a repetition of an Event writes it again. Raises
        AssertionError if there is no such Event after the time `within`.
        """

        def events() -> Objects:
            return [event for event in self.list("event", None) if _is_about(event, about)]

        def find() -> Objects:
            return [event for event in events() if event.get("reason") == reason]

        found = self._waiter.wait(find, self._clock.now() + _ns(within))
        if not found:
            others = ", ".join(dict.fromkeys(event.get("reason", "") for event in events()))
            problem = f"no event {reason} about {about} within {within}"
            raise self._failure(f"{problem}; there are: {others or 'none'}")
        return max(found, key=lambda event: int(event["metadata"]["resourceVersion"]))

    def _expect_pod(
        self,
        name: str,
        namespace: str,
        check: Callable[[Json], str],
        within: Duration,
        otherwise: str,
    ) -> str:
        def checked() -> str:
            pod = self.get("pod", name, namespace)
            return check(pod) if pod is not None else ""

        found = self._waiter.wait(checked, self._clock.now() + _ns(within))
        if not found:
            status = status_text(self.get("pod", name, namespace))
            raise self._failure(
                f"{name} {otherwise} within {within}: {status}", described=(namespace, name)
            )
        return found

    def _failure(self, problem: str, described: tuple[str, str] | None = None) -> AssertionError:
        """Return an error with `problem` and a list of the pods without a node, with reasons.

        `described` is the namespace and name of a pod that `problem` already describes. The list
        omits this pod.
        """
        waiting = [
            pod for pod in self.list("pod", None) if is_waiting(pod) and _identity(pod) != described
        ]
        shown = [f"  {'/'.join(_identity(pod))}: {status_text(pod)}" for pod in waiting[:SHOWN_MAX]]
        if len(waiting) > SHOWN_MAX:
            shown.append(f"  and {len(waiting) - SHOWN_MAX} more")
        heading = ["pods without a node:"] if shown else []
        return AssertionError("\n".join([problem, *heading, *shown]))


def require_speed(speed: object) -> None:
    """Raise TypeError or ValueError if `speed` is not a valid speed of the clock."""
    if not isinstance(speed, int | float):
        raise TypeError(f"speed {speed!r} is not a number")
    if not SPEED_MIN <= speed <= SPEED_MAX:
        raise ValueError(f"speed {SPEED_RANGE}, not {speed}")


def _identity(pod: Json) -> tuple[str, str]:
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def _is_about(event: Json, name: str) -> bool:
    return bool(event.get("involvedObject", {}).get("name") == name)


def _ns(duration: object) -> DurationNs:
    """Return `duration` in nanoseconds.

    Raises TypeError or ValueError if it is not a duration, or is negative.
    """
    match duration:
        case str():
            found = parse_duration(duration)
        case timedelta():
            found = int(duration.total_seconds() * 1e9)
        case _:
            problem = f"a duration is text such as '90s', or a timedelta, not {duration!r}"
            raise TypeError(problem)
    if found < 0:
        raise ValueError(f"the duration {duration} is negative")
    return found


def manifests_of(given: Manifests) -> list[Json]:
    """Return the objects in `given`, with the items of Lists in place of the Lists.

    Raises TypeError if `given` contains something that is not a mapping.
    """
    if isinstance(given, Path):
        return manifests_of(given.read_text())
    if isinstance(given, str):
        return manifests_of([one for one in yaml.safe_load_all(given) if one is not None])
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        return _unpacked(given)
    return [manifest for one in given for manifest in _unpacked(one)]


def _unpacked(given: object) -> list[Json]:
    if isinstance(given, str):
        raise TypeError(f"a manifest is a mapping; is {given!r} meant as a Path?")
    if not isinstance(given, Mapping):
        raise TypeError(f"a manifest is a mapping, not {type(given).__name__}")
    if "items" in given and str(given.get("kind", "")).endswith("List"):
        return [manifest for item in given["items"] or () for manifest in _unpacked(item)]
    return [dict(given)]
