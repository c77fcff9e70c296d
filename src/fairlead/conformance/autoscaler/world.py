"""FleetWorld: the cluster around the autoscaler in a recording.

A simple scheduler binds pods. By default, an evicted pod is deleted 3 s after its eviction. If a
pod is evicted or loses its node, a replacement is created 1 s later, even if the evicted pod still
exists. Pods of DaemonSets and pods without a controller are not replaced. New machines register
their Nodes, which become ready later. Things that are due at one instant are performed in this
order: the autoscaler's background work, the cluster's events, the autoscaler's loop. The order of
the cluster's events is: steps of the script and changes of machines, removals of Nodes,
replacements of pods, removals of evicted pods.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from fairlead.api.codec import decode_as, without_nulls
from fairlead.api.json import Json
from fairlead.api.nodes.taint import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from fairlead.api.objects import (
    ApiObject,
    DaemonSet,
    Job,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    StorageClass,
)
from fairlead.api.pods.facts import controller_of
from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.selector import selector_matches
from fairlead.api.well_known_label import HOSTNAME
from fairlead.conformance.autoscaler.fleet import Fleet, FleetGroup
from fairlead.conformance.autoscaler.instant import at_ms, text_at, to_ms
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import Instance
from fairlead.engine.autoscaling.cluster_autoscaler.options import parse_options
from fairlead.engine.autoscaling.cluster_autoscaler.static_autoscaler import StaticAutoscaler
from fairlead.engine.core.command import EvictPod, PatchObject, RecordEvent
from fairlead.engine.core.instant import Instant

_TERMINATE_MS: Final = 3_000
_REPLACE_MS: Final = 1_000
_LISTS: Final[dict[str, type[ApiObject]]] = {
    "daemonsets": DaemonSet,
    "replicasets": ReplicaSet,
    "statefulsets": StatefulSet,
    "replicationcontrollers": ReplicationController,
    "jobs": Job,
    "persistentvolumes": PersistentVolume,
    "persistentvolumeclaims": PersistentVolumeClaim,
    "storageclasses": StorageClass,
}
_NOT_READY: Final = "node.kubernetes.io/not-ready"
_TERMINATE: Final = "fleet/terminate-ms"
_VIOLATION: Final = "Cannot evict pod as it would violate the pod's disruption budget."
# The order of events at the same instant. _SCRIPT also stands for events of machines and nodes.
_SCRIPT, _GONE, _REPLACEMENT, _REMOVAL = range(4)


class FleetWorld:
    """The simulated cluster of a case.

    `actions` contains the changes of the cluster. `events` contains the Kubernetes events that the
    autoscaler recorded. Times are in ms after the start.
    """

    def __init__(self, case: Json, *, live: bool) -> None:
        """Build the cluster of `case` at t = 0.

        If `live` is False, only the autoscaler acts: pods are neither bound nor replaced, new
        machines do not register, and disruption budgets keep the status that the case states.
        """
        self._live = live
        self.now_ms = 0
        self.actions: list[Json] = []
        self.events: list[Json] = []
        self.nodes: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}
        self._pdbs: list[Json] = case.get("pdbs") or []
        self._daemonsets: list[Json] = case.get("daemonsets") or []
        self._failures = {one["key"]: one["count"] for one in case.get("evictFailures") or ()}
        self._queue: list[tuple[int, int, str, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._replacements: dict[str, int] = {}
        self._terminating: set[str] = set()
        self.fleet = Fleet([self._group(one) for one in case["nodeGroups"]])
        priorities = case.get("priorityConfigMap")
        self.autoscaler = StaticAutoscaler(
            self.fleet, parse_options(case["options"]), priorities=lambda: priorities
        )
        self._load(case)

    # --- building --------------------------------------------------------------------------

    def _group(self, case: Json) -> FleetGroup:
        return FleetGroup(
            case, self._act, self._machine_created, self._machine_deleted, self._is_registered
        )

    def _load(self, case: Json) -> None:
        for field, view in _LISTS.items():
            for obj in case.get(field) or ():
                self.autoscaler.put(decode_as(view, without_nulls(obj)))
        for node in case["nodes"]:
            self._put_node(node)
            group = self.fleet.node_group_for(node["spec"].get("providerID", ""))
            if group is not None:
                name = node["metadata"]["name"]
                group.machines[name] = Instance(group.provider_id(name))
        for group in self.fleet.node_groups():
            for one in group.case.get("instances") or ():
                self._load_instance(group, one)
            group.target = group.case.get("target", len(group.machines))
        for pod in case["pods"]:
            self._put_pod(pod)
        self._put_pdbs()
        registry = self.autoscaler.context.registry
        for one in case.get("failedScaleUps") or ():
            registry.backoff.back_off(one["group"], at_ms(-1000 * one["age_s"]))
        for one in case.get("scaleUpsInProgress") or ():
            group = self.fleet.groups[one["group"]]
            registry.register_scale_up(group, one["delta"], at_ms(-1000 * one["age_s"]))
        registry.cache.refresh_if_due(at_ms(0))

    def _load_instance(self, group: FleetGroup, case: Json) -> None:
        name = case["id"].rpartition("/")[2]
        error = None
        if case.get("code") or case.get("class"):
            group.machines[name] = Instance(case["id"])
            group.fail_instance(name, {"message": "", "code": "", "class": "", **case})
            error = group.machines[name].error
        group.machines[name] = Instance(case["id"], case.get("state", ""), error)

    # --- objects ---------------------------------------------------------------------------

    def _put_node(self, node: Json) -> None:
        name = node["metadata"]["name"]
        self.nodes[name] = node
        self.autoscaler.put(decode_as(Node, without_nulls(node)))

    def _put_pod(self, pod: Json) -> None:
        view = _pod_view(pod)
        self.pods[view.key] = pod
        self.autoscaler.put(view)

    def _drop_pod(self, key: str) -> None:
        pod = self.pods.pop(key)
        self._terminating.discard(key)
        self.autoscaler.remove(_pod_view(pod))

    def _put_pdbs(self) -> None:
        for pdb in self._pdbs:
            current = pdb
            if self._live:
                allowed = self._healthy(pdb) - pdb["spec"].get("minAvailable", 0)
                current = {**pdb, "status": {"disruptionsAllowed": max(0, allowed)}}
            self.autoscaler.put(decode_as(PodDisruptionBudget, without_nulls(current)))

    def _healthy(self, pdb: Json) -> int:
        """Return the number of bound pods that the budget selects and that are not terminating."""
        view = decode_as(PodDisruptionBudget, without_nulls(pdb))
        selected = 0
        for key, pod in self.pods.items():
            meta = pod["metadata"]
            is_counted = bool(pod["spec"].get("nodeName")) and key not in self._terminating
            if is_counted and meta["namespace"] == view.metadata.namespace:
                selected += view.spec.selector is not None and selector_matches(
                    view.spec.selector, meta.get("labels") or {}
                )
        return selected

    # --- records ---------------------------------------------------------------------------

    def _act(self, now: Instant, op: str, **fields: Any) -> None:
        self.actions.append({"t_ms": to_ms(now), "op": op, **fields})

    def _note(self, op: str, **fields: Any) -> None:
        self._act(at_ms(self.now_ms), op, **fields)

    # --- machines --------------------------------------------------------------------------

    def _is_registered(self, name: str) -> bool:
        return name in self.nodes

    def _machine_created(self, group: FleetGroup, name: str, now: Instant) -> None:
        """Plan the registration of a new machine, unless a fault prevents it."""
        if not self._live:
            return
        fault = group.fault("create-error", now)
        if fault is not None:
            due = to_ms(now) + fault["after_ms"]
            self._at(due, _SCRIPT, name, partial(self._instance_fails, group, name, fault))
        elif group.fault("never-register", now) is None:
            due = to_ms(now) + group.case.get("register_ms", 0)
            never_ready = group.fault("never-ready", now) is not None
            register = partial(self._register, group, name, never_ready=never_ready)
            self._at(due, _SCRIPT, name, register)

    def _instance_fails(self, group: FleetGroup, name: str, fault: Json) -> None:
        if name in group.machines:
            group.fail_instance(name, fault)
            self._note("instance_error", instance=group.provider_id(name), code=fault["code"])

    def _register(self, group: FleetGroup, name: str, *, never_ready: bool) -> None:
        if name not in group.machines:
            return
        group.machines[name] = Instance(group.provider_id(name))
        template = group.case["template"]
        meta = template["metadata"]
        labels = {**(meta.get("labels") or {}), HOSTNAME: name}
        taints = list((template.get("spec") or {}).get("taints") or ())
        now = text_at(self.now_ms)
        spec = {
            **(template.get("spec") or {}),
            "providerID": group.provider_id(name),
            "taints": [*taints, {"key": _NOT_READY, "effect": NO_SCHEDULE}],
        }
        conditions = [{"type": "Ready", "status": "False", "lastTransitionTime": now}]
        metadata = {**meta, "name": name, "labels": labels, "creationTimestamp": now}
        status = {**template["status"], "conditions": conditions}
        self._put_node({"metadata": metadata, "spec": spec, "status": status})
        self._note("node_registered", node=name)
        for daemonset in self._daemonsets:
            self._add_daemon_pod(daemonset, name, labels)
        if not never_ready:
            due = self.now_ms + group.case.get("ready_ms", 0)
            self._at(due, _SCRIPT, name, partial(self._ready, name))

    def _add_daemon_pod(self, daemonset: Json, node: str, labels: Json) -> None:
        template, meta = daemonset["spec"]["template"], daemonset["metadata"]
        selector = template["spec"].get("nodeSelector") or {}
        if any(labels.get(key) != value for key, value in selector.items()):
            return
        owner = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
        }
        metadata = {
            **(template.get("metadata") or {}),
            "name": f"{meta['name']}-{node}",
            "namespace": meta["namespace"],
            "creationTimestamp": text_at(self.now_ms),
            "ownerReferences": [owner],
        }
        spec = {"schedulerName": "default-scheduler", **template["spec"], "nodeName": node}
        self._put_pod({"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})

    def _ready(self, name: str) -> None:
        if name in self.nodes:
            self._set_ready(name, ready=True)
            self._note("node_ready", node=name)

    def _set_ready(self, name: str, *, ready: bool) -> None:
        node = self.nodes[name]
        status, now = ("True" if ready else "False"), text_at(self.now_ms)
        condition = {"type": "Ready", "status": status, "lastTransitionTime": now}
        others = [one for one in node["status"].get("conditions") or () if one["type"] != "Ready"]
        taints = [one for one in node["spec"].get("taints") or () if one["key"] != _NOT_READY]
        if not ready:
            taints.append({"key": _NOT_READY, "effect": NO_SCHEDULE})
        self._put_node(
            {
                **node,
                "spec": {**node["spec"], "taints": taints},
                "status": {**node["status"], "conditions": [*others, condition]},
            }
        )

    def _machine_deleted(self, group: FleetGroup, name: str, now: Instant) -> None:
        self.fleet.deleted_ids.add(group.provider_id(name))
        if name in self.nodes:
            due = to_ms(now) + group.case.get("gone_ms", 0)
            self._at(due, _GONE, name, partial(self._node_gone, name))

    def _node_gone(self, name: str) -> None:
        """Delete the Node and its pods."""
        node = self.nodes.pop(name, None)
        if node is None:
            return
        self._note("node_gone", node=name)
        self.autoscaler.remove(decode_as(Node, without_nulls(node)))
        for key in [key for key, pod in self.pods.items() if pod["spec"].get("nodeName") == name]:
            if key not in self._terminating:
                self._plan_replacement(key)
            self._note("pod_removed", pod=key, why="node gone")
            self._drop_pod(key)

    # --- pods ------------------------------------------------------------------------------

    def _plan_replacement(self, key: str) -> None:
        pod = self.pods[key]
        owner = controller_of(_pod_view(pod).metadata)
        if not self._live or owner is None or owner.kind == "DaemonSet":
            return
        stem = re.sub(r"-r\d+$", "", pod["metadata"]["name"])
        due = self.now_ms + _REPLACE_MS
        self._at(due, _REPLACEMENT, key, partial(self._replace, pod, stem))

    def _replace(self, pod: Json, stem: str) -> None:
        count = self._replacements[stem] = self._replacements.get(stem, 0) + 1
        metadata = {
            **pod["metadata"],
            "name": f"{stem}-r{count}",
            "creationTimestamp": text_at(self.now_ms),
        }
        metadata.pop("deletionTimestamp", None)
        metadata.pop("uid", None)
        spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        self._create({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})

    def _create(self, pod: Json) -> None:
        meta = pod["metadata"]
        self._put_pod(pod)
        self._note("pod_created", pod=f"{meta['namespace']}/{meta['name']}")

    def _evict(self, key: str) -> str:
        """Evict the pod `key`, and return "ok", "refused" or "not-found"."""
        pod = self.pods.get(key)
        if pod is None:
            return "not-found"
        if key in self._terminating:
            return "ok"
        left = self._failures.get(key, 0)
        if left:
            self._failures[key] = left - 1 if left > 0 else left
            return "refused"
        if not self._is_allowed(pod):
            return "refused"
        self._terminating.add(key)
        metadata = {**pod["metadata"], "deletionTimestamp": text_at(self.now_ms)}
        pod = {**pod, "metadata": metadata}
        self._put_pod(pod)
        annotations = metadata.get("annotations") or {}
        wait = int(annotations.get(_TERMINATE, _TERMINATE_MS))
        self._plan_replacement(key)
        if wait >= 0:
            self._at(self.now_ms + wait, _REMOVAL, key, partial(self._terminated, key, pod))
        self._put_pdbs()
        return "ok"

    def _is_allowed(self, pod: Json) -> bool:
        context = self.autoscaler.context
        labels, namespace = pod["metadata"].get("labels") or {}, pod["metadata"]["namespace"]
        for pdb in context.listers.all_of(PodDisruptionBudget):
            selector = pdb.spec.selector
            if pdb.metadata.namespace != namespace or selector is None:
                continue
            if selector_matches(selector, labels) and pdb.status.disruptions_allowed < 1:
                return False
        return True

    def _terminated(self, key: str, pod: Json) -> None:
        if self.pods.get(key) is pod:
            self._note("pod_removed", pod=key, why="terminated")
            self._drop_pod(key)

    def _schedule(self) -> None:
        """Bind pending pods, in order of creation, to the first node on which they fit."""
        if not self._live:
            return
        views = {name: decode_as(Node, without_nulls(node)) for name, node in self.nodes.items()}
        for key, pod in list(self.pods.items()):
            if pod["spec"].get("nodeName") or key in self._terminating:
                continue
            view = _pod_view(pod)
            name = next((name for name, node in views.items() if self._fits(view, node)), None)
            if name is None:
                self._mark_unschedulable(pod)
                continue
            status = {"phase": "Running", "startTime": text_at(self.now_ms)}
            self._put_pod({**pod, "spec": {**pod["spec"], "nodeName": name}, "status": status})
            self._note("pod_bound", pod=key, node=name)
        self._put_pdbs()

    def _fits(self, pod: Pod, node: Node) -> bool:
        ready = [one.status for one in node.status.conditions if one.type == "Ready"]
        if ready != ["True"] or node.spec.unschedulable:
            return False
        effects = (NO_SCHEDULE, NO_EXECUTE)
        if find_untolerated(node.spec.taints, pod.spec.tolerations, effects) is not None:
            return False
        labels = node.metadata.labels
        if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
            return False
        return self._has_room(pod, node)

    def _has_room(self, pod: Pod, node: Node) -> bool:
        name = node.metadata.name
        running = [
            _pod_view(one) for one in self.pods.values() if one["spec"].get("nodeName") == name
        ]
        allocatable = node.status.allocatable
        if len(running) + 1 > whole_value(allocatable.get("pods", 0)):
            return False
        used: dict[str, int] = {}
        for one in (*running, pod):
            for resource, amount in pod_requests(one).items():
                used[resource] = used.get(resource, 0) + amount
        for resource, amount in pod_requests(pod).items():
            read = milli_value if resource == "cpu" else whole_value
            if amount and used[resource] > read(allocatable.get(resource, 0)):
                return False
        return True

    def _mark_unschedulable(self, pod: Json) -> None:
        conditions = (pod.get("status") or {}).get("conditions") or ()
        if any(one["type"] == "PodScheduled" for one in conditions):
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "lastTransitionTime": text_at(self.now_ms),
        }
        self._put_pod({**pod, "status": {"phase": "Pending", "conditions": [condition]}})

    # --- events ----------------------------------------------------------------------------

    def _at(self, due_ms: int, order: int, name: str, event: Callable[[], None]) -> None:
        self._scheduled += 1
        key = "" if order == _SCRIPT else name
        heapq.heappush(self._queue, (due_ms, order, key, self._scheduled, event))

    def plan_script(self, script: Sequence[Json]) -> None:
        """Plan the steps of a timeline's script at their times `t_ms`."""
        for step in script:
            self._at(step["t_ms"], _SCRIPT, "", partial(self._step, step))

    def _step(self, step: Json) -> None:
        match step["op"]:
            case "create_pods":
                for pod in step["pods"]:
                    now = text_at(self.now_ms)
                    metadata = {**pod["metadata"], "creationTimestamp": now}
                    self._create({**pod, "metadata": metadata})
            case "delete_pod" | "finish_pod":
                if step["key"] in self.pods:
                    why = "finished" if step["op"] == "finish_pod" else "script"
                    self._note("pod_removed", pod=step["key"], why=why)
                    self._drop_pod(step["key"])
            case "kill_instance":
                self._kill(step["node"])
            case "set_min" | "set_max":
                group = self.fleet.groups[step["key"]]
                setattr(group, f"{step['op'][4:]}_size", step["value"])
            case op:
                if step["node"] in self.nodes:
                    self._change_node(op, step)

    def _change_node(self, op: str, step: Json) -> None:
        name = step["node"]
        node = self.nodes[name]
        match op:
            case "unready" | "ready":
                self._set_ready(name, ready=op == "ready")
                self._note(f"node_{op}", node=name)
            case "annotate":
                merged = {**(node["metadata"].get("annotations") or {}), **step["annotations"]}
                annotations = {key: value for key, value in merged.items() if value}
                metadata = {**node["metadata"], "annotations": annotations}
                self._put_node({**node, "metadata": metadata})
            case "taint" | "untaint":
                taints = [
                    one for one in node["spec"].get("taints") or () if one["key"] != step["key"]
                ]
                if op == "taint":
                    taints.append({"key": step["key"], "effect": NO_SCHEDULE})
                self._put_node({**node, "spec": {**node["spec"], "taints": taints}})
            case _:
                raise ValueError(op)

    def _kill(self, name: str) -> None:
        """Remove the machine, its Node and the node's pods, but keep the group's target size."""
        for group in self.fleet.node_groups():
            if group.machines.pop(name, None) is not None:
                self.fleet.deleted_ids.add(group.provider_id(name))
        self._node_gone(name)

    # --- the autoscaler's commands ---------------------------------------------------------

    def perform(self) -> None:
        """Perform the autoscaler's commands; after patches or evictions, bind pending pods."""
        commands = self.autoscaler.commands
        has_written = False
        while commands:
            batch, commands[:] = list(commands), []
            for command in batch:
                match command:
                    case RecordEvent():
                        self._record(command)
                    case PatchObject():
                        self._patch_node(command)
                        has_written = True
                    case EvictPod(pod=ref):
                        result = self._evict(ref.key)
                        self._note("evict", pod=ref.key, result=result)
                        problem = _VIOLATION if result == "refused" else None
                        now = at_ms(self.now_ms)
                        self.autoscaler.actuator.handle_eviction_outcome(ref, problem, now)
                        has_written = True
                    case _:
                        raise ValueError(command)
        if has_written:
            self._schedule()

    def _record(self, event: RecordEvent) -> None:
        self.events.append(
            {
                "t_ms": self.now_ms,
                "object": f"{event.regarding.kind}/{event.regarding.key}",
                "type": event.type,
                "reason": event.reason,
                "message": event.note,
            }
        )

    def _patch_node(self, patch: PatchObject) -> None:
        name = patch.target.name
        node = self.nodes[name]
        spec = {**node["spec"]}
        before = {one["key"] for one in spec.get("taints") or ()}
        spec["taints"] = patch.patch["spec"].get("taints") or []
        after = {one["key"] for one in spec["taints"]}
        for key in sorted(after - before):
            self._note("taint", node=name, key=key)
        for key in sorted(before - after):
            self._note("untaint", node=name, key=key)
        if "unschedulable" in patch.patch["spec"]:
            cordon = bool(patch.patch["spec"]["unschedulable"])
            if cordon != bool(spec.get("unschedulable")):
                self._note("cordon" if cordon else "uncordon", node=name)
            spec["unschedulable"] = cordon
        self._put_node({**node, "spec": spec})

    # --- time ------------------------------------------------------------------------------

    def next_ms(self) -> int | None:
        """Return the time (ms) at which an event or background work is due next; None if never.

        Loops of the autoscaler are left out, because the caller runs them.
        """
        due = self.autoscaler.actuator.next_due()
        times = [to_ms(due)] if due is not None else []
        times += [self._queue[0][0]] if self._queue else []
        return min(times, default=None)

    def advance(self, t_ms: int) -> None:
        """Perform events and background work up to and including `t_ms`, but no autoscaler loop."""
        while True:
            next_ms = self.next_ms()
            if next_ms is None or next_ms > t_ms:
                break
            self.now_ms = max(self.now_ms, next_ms)
            due = self.autoscaler.actuator.next_due()
            if due is not None and to_ms(due) <= self.now_ms:
                self.autoscaler.actuator.run_due(at_ms(self.now_ms))
                self.perform()
                continue
            while self._queue and self._queue[0][0] <= self.now_ms:
                heapq.heappop(self._queue)[4]()
            self._schedule()
        self.now_ms = t_ms


def _pod_view(pod: Json) -> Pod:
    meta = pod["metadata"]
    if "uid" not in meta:
        meta = {**meta, "uid": f"{meta['namespace']}-{meta['name']}"}
    return decode_as(Pod, without_nulls({**pod, "metadata": meta}))
