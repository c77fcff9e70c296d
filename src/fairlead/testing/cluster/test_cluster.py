"""TestCluster: a whole cluster for one test, its time, its failures, and what to expect of it.

    def test_survives_a_lost_node(fairlead_cluster):
        fairlead_cluster.apply(deployment)
        node = fairlead_cluster.expect_running("web-0")
        fairlead_cluster.fail_node(node)
        fairlead_cluster.expect_evicted_at("web-0", "5m50s", tolerance="5s")

Any client can work on the cluster meanwhile (`kubeconfig`). An expectation lets time pass until it
is met or its limit is reached (`waiting`); minutes there take milliseconds here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from fairlead.api.json import Json
from fairlead.api.kubelet_behaviour import KUBELET, parse_kubelet_behaviour
from fairlead.api.timestamp import parse_duration
from fairlead.engine.core.instant import DurationNs
from fairlead.testing.cluster.api_client import Asking, path_of
from fairlead.testing.cluster.cluster_thread import ClusterThread
from fairlead.testing.cluster.manifest import Manifests, manifests_of
from fairlead.testing.cluster.pod_status import (
    evicted,
    is_ready,
    lingering,
    node_of,
    story,
    why_unschedulable,
)
from fairlead.testing.cluster.wait import Waiting
from fairlead.testing.refusal import speaks_for_itself
from fairlead.worlds.local.server.runner import Runner

Objects = list[Json]
Duration = str | timedelta
Found = TypeVar("Found")

DEFAULT: Final = "default"
ZONE: Final = "topology.kubernetes.io/zone"
MANAGER: Final = "fairlead-test"

__tracebackhide__ = speaks_for_itself


class TestCluster:
    """A cluster and the verbs of a test. Times are virtual: the cluster's own."""

    __test__ = False  # what pytest should not take for a class of tests

    def __init__(self, thread: ClusterThread) -> None:
        """Use the fixture `fairlead_cluster`, or `fairlead.testing.cluster.start.start_cluster`."""
        self._thread = thread
        self._clock = thread.cluster.clock
        self._asking = Asking(thread)
        self._waiting = Waiting(thread)
        self.url = thread.place.url
        self.token = thread.place.token
        self.authority = thread.place.authority
        self.kubeconfig = thread.place.kubeconfig

    # --- time ------------------------------------------------------------------------------

    @property
    def now(self) -> datetime:
        """What time it is in the cluster."""
        return datetime.fromtimestamp(self._clock.now() / 1e9, UTC)

    def advance(self, duration: Duration) -> datetime:
        """Let time pass at once, with everything that falls due in it; what time it is then."""
        self._thread.call(lambda runner: runner.advance(_ns(duration)))
        return self.now

    def pause(self) -> None:
        """Let time stand still but for `advance` and expectations."""
        self._steer(speed=None, paused=True)

    def resume(self, speed: float | None = None) -> None:
        """Let time run, maybe at another speed: so many seconds in the cluster per real second."""
        self._steer(speed=speed, paused=False)

    def _steer(self, *, speed: float | None, paused: bool) -> None:
        async def steering(runner: Runner) -> None:
            runner.steer(speed=speed, paused=paused)

        self._thread.call(steering)

    # --- objects ---------------------------------------------------------------------------

    def apply(self, manifests: Manifests) -> Objects:
        """Apply objects, and give them back as they are stored.

        `manifests` is an object, several, YAML text, or the path of a file of it. Raises
        RefusedError, and LookupError for a kind that is not served.
        """
        return [self._apply(manifest) for manifest in manifests_of(manifests)]

    def _apply(self, manifest: Json) -> Json:
        meta = manifest.get("metadata") or {}
        kind = self._asking.kind_of(manifest)
        path = path_of(kind, meta.get("namespace", DEFAULT), meta.get("name", ""))
        query = {"fieldManager": MANAGER, "force": "true"}
        return self._asking.request("PATCH", path, manifest, "application/apply-patch+yaml", query)

    def get(self, kind: str, name: str, namespace: str = DEFAULT) -> Json | None:
        """An object by kind (`pod`, `deploy`, `Widget`), None when there is none."""
        return self._asking.find(self._asking.kind(kind), namespace, name)

    def list(self, kind: str, namespace: str | None = DEFAULT) -> Objects:
        """The objects of a kind; namespace None for those of all."""
        return self._asking.objects(self._asking.kind(kind), namespace)

    def delete(self, kind: str, name: str, namespace: str = DEFAULT) -> None:
        """Delete an object; it may take its time to go. Raises RefusedError."""
        self.request("DELETE", path_of(self._asking.kind(kind), namespace, name))

    def request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: str
    ) -> Json:
        """One request to the API server as its administrator; the answer's JSON.

        Raises RefusedError.
        """
        return self._asking.request(method, path, body, query=query)

    # --- trouble ---------------------------------------------------------------------------

    def fail_node(self, name: str, how: str = "stopped") -> None:
        """Let a node fall silent, or misbehave as `how` says: `paused`, `not-ready`, `slow 45s`...

        Raises ValueError for anything else, RefusedError when there is no such node.
        """
        parse_kubelet_behaviour(how)
        self._annotate(name, how)

    def fail_zone(self, zone: str, how: str = "stopped") -> Objects:
        """The same for all nodes of a zone; those nodes. Raises LookupError when there is none."""
        nodes = [
            node
            for node in self.list("node")
            if node["metadata"].get("labels", {}).get(ZONE) == zone
        ]
        if not nodes:
            known = {n["metadata"].get("labels", {}).get(ZONE, "") for n in self.list("node")}
            zones = ", ".join(sorted(known - {""})) or "none"
            raise LookupError(f"no node is in a zone called {zone!r}; there are: {zones}")
        for node in nodes:
            self.fail_node(node["metadata"]["name"], how)
        return nodes

    def restore_node(self, name: str) -> None:
        """Let a node come back. Raises RefusedError."""
        self._annotate(name, None)

    def _annotate(self, node: str, how: str | None) -> None:
        patch = {"metadata": {"annotations": {KUBELET: how}}}
        path = f"/api/v1/nodes/{node}"
        self._asking.request("PATCH", path, patch, "application/merge-patch+json")

    # --- clients ---------------------------------------------------------------------------

    def expect_watched(self, kind: str, *, patience_s: float = 10.0) -> None:
        """Some client watches objects of a kind; real time passes until it does."""
        found = self._asking.kind(kind)
        if not self._waiting.until_watched(found, patience_s):
            raise AssertionError(f"nobody watches {found.plural} after {patience_s:g} real seconds")

    # --- expectations ----------------------------------------------------------------------

    def expect(
        self, check: Callable[[], Found], within: Duration = "1m", what: str = "what was expected"
    ) -> Found:
        """Let time pass until `check` gives something true, which is given back.

        Raises AssertionError that says `what` did not happen.
        """
        found = self._waiting.wait(check, self._clock.now() + _ns(within))
        if not found:
            raise AssertionError(f"{what} did not happen within {within}")
        return found

    def expect_bound(
        self, pod: str, *, node: str = "", within: Duration = "1m", namespace: str = DEFAULT
    ) -> str:
        """The pod is given a node (`node`, if one is named); its name."""
        at = self._expect_pod(pod, namespace, node_of, within, "was not bound")
        if node and at != node:
            raise AssertionError(f"{pod} was bound to {at}, not {node}")
        return at

    def expect_running(self, pod: str, *, within: Duration = "1m", namespace: str = DEFAULT) -> str:
        """The pod runs and is ready; its node."""

        def where(found: Json) -> str:
            return node_of(found) if is_ready(found) else ""

        return self._expect_pod(pod, namespace, where, within, "does not run")

    def expect_unschedulable(
        self, pod: str, because: str = "", *, within: Duration = "1m", namespace: str = DEFAULT
    ) -> str:
        """The scheduler finds no node for the pod, and says `because`; its whole message."""

        def why(found: Json) -> str:
            message = why_unschedulable(found)
            return message if because in message else ""

        return self._expect_pod(pod, namespace, why, within, "was not found unschedulable")

    def expect_evicted_at(
        self, pod: str, after: Duration, *, tolerance: Duration = "1s", namespace: str = DEFAULT
    ) -> None:
        """The pod is told to go `after` that time from now, give or take `tolerance`."""
        began = self._clock.now()
        known = self.get("pod", pod, namespace)
        if known is None:
            raise AssertionError(f"there is no pod {namespace}/{pod}")
        uid = known["metadata"]["uid"]
        limit = began + _ns(after) + _ns(tolerance)
        if not self._waiting.wait(lambda: evicted(self.get("pod", pod, namespace), uid), limit):
            told = story(self.get("pod", pod, namespace))
            raise AssertionError(f"{pod} was not evicted after {after}: {told}")
        passed = self._clock.now() - began
        if passed < _ns(after) - _ns(tolerance):
            raise AssertionError(f"{pod} was evicted after {passed / 1e9:g}s, not {after}")

    def expect_gone(
        self, kind: str, name: str, *, within: Duration = "1m", namespace: str = DEFAULT
    ) -> None:
        """There is no such object any more."""
        limit = self._clock.now() + _ns(within)
        if not self._waiting.wait(lambda: self.get(kind, name, namespace) is None, limit):
            told = lingering(self.get(kind, name, namespace))
            raise AssertionError(f"{kind} {name} was not gone within {within}: {told}")

    def expect_event(self, reason: str, about: str, *, within: Duration = "1m") -> Json:
        """An Event with `reason` is recorded about an object of that name; the Event."""

        def told() -> Objects:
            return [event for event in self.list("event", None) if _is_about(event, about)]

        def find() -> Objects:
            return [event for event in told() if event.get("reason") == reason]

        found = self._waiting.wait(find, self._clock.now() + _ns(within))
        if not found:
            others = ", ".join(dict.fromkeys(event.get("reason", "") for event in told()))
            problem = f"no event {reason} about {about} within {within}"
            raise AssertionError(f"{problem}; there are: {others or 'none'}")
        return found[-1]

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

        found = self._waiting.wait(checked, self._clock.now() + _ns(within))
        if not found:
            told = story(self.get("pod", name, namespace))
            raise AssertionError(f"{name} {otherwise} within {within}: {told}")
        return found


def _is_about(event: Json, name: str) -> bool:
    return bool(event.get("involvedObject", {}).get("name") == name)


def _ns(duration: Duration) -> DurationNs:
    if isinstance(duration, timedelta):
        return int(duration.total_seconds() * 1e9)
    return parse_duration(duration)
