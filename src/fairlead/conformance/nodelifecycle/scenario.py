"""The scenario of a recorded node timeline: objects, script, and scripted kubelets.

A running kubelet renews its lease and posts its status periodically. Each of these two actions has
a recorded period and a recorded phase, which is the time of the first action. For example, with the
phase 3 s and the period 10 s, the lease is renewed at 3 s, 13 s, 23 s and so on. A posted status
contains only conditions.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.lease import NODE_LEASES
from fairlead.api.timestamp import format_timestamp
from fairlead.apiserver.kind import NODE, POD, Kind, find_kind
from fairlead.conformance.comparison import duration_ms
from fairlead.conformance.nodelifecycle.node_world import NodeWorld, instant, to_ms
from fairlead.conformance.nodelifecycle.objects import (
    lease_object,
    node_object,
    pod_object,
    posted_condition,
)
from fairlead.engine.core.command import DeleteObject, ObjectRef
from fairlead.engine.core.instant import Instant
from fairlead.worlds.perform import perform

_FOUND = find_kind("lease")
assert _FOUND is not None
LEASE: Final[Kind] = _FOUND
NOT_THE_KUBELETS: Final = "NetworkUnavailable"  # The kubelet does not post this condition.


class _Kubelet(Struct):
    """The simulated kubelet of one Node object; a new Node of the same name has a new kubelet.

    `form` contains the period and the phase of the Lease renewals (`lease_period_ms` and
    `lease_phase_ms`), and those of the status updates. The kubelet acts at the phase plus
    multiples of the period. `wants` contains the conditions that the kubelet posts, by condition
    type.
    """

    form: Json
    wants: dict[str, Json]
    is_running: bool
    is_leasing: bool = True
    is_alive: bool = True  # until the node is deleted


def begin_scenario(world: NodeWorld, form: Json) -> None:
    """Create the objects of the scenario `form`; schedule its script and kubelet heartbeats."""
    NodeScenario(world, form).begin()


class NodeScenario(Struct):
    """Creates the scenario's objects in `world`; schedules its script and kubelet heartbeats."""

    world: NodeWorld
    form: Json
    _kubelets: dict[str, _Kubelet] = field(default_factory=dict)

    def begin(self) -> None:
        """Create the objects, and schedule the script and the heartbeats of the kubelets."""
        for node in self.form["nodes"]:
            self._create_node(node, 0)
        for pod in self.form["pods"]:
            self._put(POD, pod_object(pod, self._grace_s(pod)))
        for line in self.form["script"]:
            self.world.at(line["t_ms"], partial(self._do, line))

    # --- direct access to storage, without the rules of the store ------------------------------

    def _put(self, kind: Kind, obj: Json) -> None:
        self.world.store.storage.put(kind, obj)

    def _find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        return self.world.store.find(kind, namespace, name)

    def _grace_s(self, pod: Json) -> int:
        """Return the pod's grace period in seconds; 0 if the scenario deletes pods immediately."""
        if self.form["config"]["pod_delete"] == "immediate":
            return 0
        grace = pod.get("grace_seconds")
        return 30 if grace is None else int(grace)

    # --- kubelets ------------------------------------------------------------------------------

    def _create_node(self, node: Json, created_at_ms: int) -> None:
        name = node["name"]
        self._put(NODE, node_object(node))
        if node["lease_renewed_ms"] is not None:
            self._renew(name, instant(node["lease_renewed_ms"]))
        if node["kubelet"] is None:
            return
        wants = {one["type"]: one for one in node["conditions"] if one["type"] != NOT_THE_KUBELETS}
        kubelet = _Kubelet(node["kubelet"], wants, node["kubelet"]["running"])
        self._kubelets[name] = kubelet
        for beat, act in (("lease", self._beat_lease), ("status", self._beat_status)):
            self._schedule(name, kubelet, beat, max(0, created_at_ms), act)

    def _schedule(self, name: str, kubelet: _Kubelet, beat: str, after_ms: int, act: Any) -> None:
        period = duration_ms(kubelet.form, f"{beat}_period_ms")
        phase = kubelet.form[f"{beat}_phase_ms"]
        if period:
            missing = max(0, (after_ms - phase) // period + 1)
            self.world.at(phase + missing * period, partial(act, name, kubelet))

    def _beat_lease(self, name: str, kubelet: _Kubelet, now: Instant) -> None:
        if not kubelet.is_alive:
            return
        if kubelet.is_running and kubelet.is_leasing:
            self._renew(name, now)
        self._schedule(name, kubelet, "lease", to_ms(now), self._beat_lease)

    def _beat_status(self, name: str, kubelet: _Kubelet, now: Instant) -> None:
        if not kubelet.is_alive:
            return
        if kubelet.is_running:
            self._post(name, kubelet.wants.values(), now)
        self._schedule(name, kubelet, "status", to_ms(now), self._beat_status)

    def _renew(self, name: str, now: Instant) -> None:
        if self._find(NODE, "", name) is None:
            return
        self._put(LEASE, lease_object(name, now))

    def _post(self, name: str, conditions: Iterable[Json], now: Instant) -> None:
        node = self._find(NODE, "", name)
        if node is None or not conditions:
            return
        posted = {one["type"]: one for one in node["status"]["conditions"]}
        for wanted in conditions:
            posted[wanted["type"]] = posted_condition(posted.get(wanted["type"], {}), wanted, now)
        status = {**node["status"], "conditions": list(posted.values())}
        self._put(NODE, {**node, "status": status})

    # --- the script ----------------------------------------------------------------------------

    def _do(self, line: Json, now: Instant) -> None:
        """Execute one line of the script. Raises ValueError if its operation is unknown."""
        operation = getattr(self, f"_op_{line['op']}", None)
        if operation is None:
            raise ValueError(f"unknown op {line['op']!r}")
        operation(line, now)

    def _op_kubelet_stop(self, line: Json, now: Instant) -> None:
        if line["node"] in self._kubelets:
            self._kubelets[line["node"]].is_running = False

    def _op_kubelet_start(self, line: Json, now: Instant) -> None:
        kubelet = self._kubelets.get(line["node"])
        if kubelet is None:
            return
        kubelet.wants |= {one["type"]: one for one in line["conditions"]}
        kubelet.is_running = True
        if kubelet.is_leasing:
            self._renew(line["node"], now)
        self._post(line["node"], kubelet.wants.values(), now)

    def _op_kubelet_set(self, line: Json, now: Instant) -> None:
        kubelet = self._kubelets.get(line["node"])
        if kubelet is None:
            return
        kubelet.wants |= {one["type"]: one for one in line["conditions"]}
        if kubelet.is_running:
            self._post(line["node"], kubelet.wants.values(), now)

    def _op_lease_stop(self, line: Json, now: Instant) -> None:
        if line["node"] in self._kubelets:
            self._kubelets[line["node"]].is_leasing = False

    def _op_lease_start(self, line: Json, now: Instant) -> None:
        if line["node"] in self._kubelets:
            self._kubelets[line["node"]].is_leasing = True
        self._renew(line["node"], now)

    def _op_lease_renew(self, line: Json, now: Instant) -> None:
        self._renew(line["node"], now)

    def _op_set_conditions(self, line: Json, now: Instant) -> None:
        self._post(line["node"], line["conditions"], now)

    def _op_remove_conditions(self, line: Json, now: Instant) -> None:
        node = self._find(NODE, "", line["node"])
        if node is not None:
            kept = [one for one in node["status"]["conditions"] if one["type"] not in line["types"]]
            self._put(NODE, {**node, "status": {**node["status"], "conditions": kept}})

    def _op_cordon(self, line: Json, now: Instant) -> None:
        self._respec(line["node"], unschedulable=True)

    def _op_uncordon(self, line: Json, now: Instant) -> None:
        self._respec(line["node"], unschedulable=False)

    def _op_taint_add(self, line: Json, now: Instant) -> None:
        """Add a taint; if the node already has it, set only its value."""
        added = {key: value for key, value in line["taint"].items() if value}
        taints = self._taints(line["node"])
        for index, taint in enumerate(taints):
            if (taint["key"], taint["effect"]) == (added["key"], added["effect"]):
                kept = {key: value for key, value in taint.items() if key != "value"}
                value = {"value": added["value"]} if "value" in added else {}
                taints[index] = kept | value
                break
        else:
            taints.append(added)
        self._respec(line["node"], taints=taints)

    def _op_taint_remove(self, line: Json, now: Instant) -> None:
        key, effect = line["taint"]["key"], line["taint"].get("effect", "")
        taints = self._taints(line["node"])
        kept = [t for t in taints if t["key"] != key or effect not in ("", t["effect"])]
        self._respec(line["node"], taints=kept)

    def _taints(self, name: str) -> list[Json]:
        node = self._find(NODE, "", name)
        return [] if node is None else list(node["spec"].get("taints", ()))

    def _respec(self, name: str, **changes: Any) -> None:
        node = self._find(NODE, "", name)
        if node is not None:
            self._put(NODE, {**node, "spec": {**node["spec"], **changes}})

    def _op_labels_set(self, line: Json, now: Instant) -> None:
        node = self._find(NODE, "", line["node"])
        if node is None:
            return
        labels = {**node["metadata"].get("labels", {}), **line["labels"]}
        for gone in [key for key, value in line["labels"].items() if not value]:
            del labels[gone]
        self._put(NODE, {**node, "metadata": {**node["metadata"], "labels": labels}})

    def _op_node_delete(self, line: Json, now: Instant) -> None:
        name = line["node"]
        storage = self.world.store.storage
        for kind, namespace in ((NODE, ""), (LEASE, NODE_LEASES)):
            if storage.find(kind, namespace, name) is not None:
                storage.remove(kind, namespace, name)
        kubelet = self._kubelets.pop(name, None)
        if kubelet is not None:
            kubelet.is_alive = False

    def _op_node_create(self, line: Json, now: Instant) -> None:
        if self._find(NODE, "", line["node_obj"]["name"]) is None:
            self._create_node(line["node_obj"], to_ms(now))

    def _op_pod_create(self, line: Json, now: Instant) -> None:
        pod = line["pod_obj"]
        if self._find(POD, pod["namespace"], pod["name"]) is None:
            self._put(POD, pod_object(pod, self._grace_s(pod)))

    def _op_pod_delete(self, line: Json, now: Instant) -> None:
        namespace, name = line["pod"].split("/")
        perform(self.world.store, DeleteObject(ObjectRef("Pod", namespace, name)), now)

    def _op_pod_remove(self, line: Json, now: Instant) -> None:
        namespace, name = line["pod"].split("/")
        if self._find(POD, namespace, name) is not None:
            self.world.store.storage.remove(POD, namespace, name)

    def _op_pod_tolerations(self, line: Json, now: Instant) -> None:
        pod = self._find(POD, *line["pod"].split("/"))
        if pod is not None:
            self._put(POD, {**pod, "spec": {**pod["spec"], "tolerations": line["tolerations"]}})

    def _op_pod_ready(self, line: Json, now: Instant) -> None:
        pod = self._find(POD, *line["pod"].split("/"))
        if pod is None:
            return
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": format_timestamp(now)}
        conditions = pod["status"].get("conditions", ())
        kept = [ready if one["type"] == "Ready" else one for one in conditions]
        self._put(POD, {**pod, "status": {**pod["status"], "conditions": kept}})
