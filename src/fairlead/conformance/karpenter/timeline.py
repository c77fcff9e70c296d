"""Replays a recorded timeline: controllers, provider and kubelets step by step.

Each step advances the clock, changes objects, and runs actions. Some actions run one pass of a
controller. The other actions (`launch`, `register`, `initialize`, `bind`, `terminate`) simulate the
provider and the kubelets, as the recorder did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.nodes.autoscaler_taint import DISRUPTED_TAINT
from fairlead.api.objects import Node, Pod, Taint
from fairlead.api.pods.facts import is_terminating
from fairlead.api.timestamp import format_timestamp
from fairlead.api.well_known_label import HOSTNAME, INSTANCE_TYPE, ZONE
from fairlead.conformance.karpenter.case import WELL_KNOWN, read_object, shown_pod
from fairlead.conformance.karpenter.scene import Scene
from fairlead.conformance.karpenter.shown_claim import shown_text
from fairlead.engine.autoscaling.karpenter.apis import (
    CONSOLIDATABLE,
    DISRUPTION_REASON,
    DRIFTED,
    INITIALIZED_CONDITION,
    LAUNCHED,
    REGISTERED_CONDITION,
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
)
from fairlead.engine.autoscaling.karpenter.cloudprovider.instance_type import InstanceType, Offering
from fairlead.engine.autoscaling.karpenter.disruption.command import DisruptionCommand
from fairlead.engine.autoscaling.karpenter.disruption.queue import CommandProgress
from fairlead.engine.autoscaling.karpenter.labels import (
    CAPACITY_TYPE,
    INITIALIZED,
    NODE_POOL_HASH,
    NODE_POOL_HASH_VERSION,
    REGISTERED,
)
from fairlead.engine.autoscaling.karpenter.nodeclaim.conditions import (
    with_condition,
    without_condition,
)
from fairlead.engine.autoscaling.karpenter.nodeclaim.lifetime import (
    expires_at,
    is_pod_event,
    with_pod_event,
)
from fairlead.engine.autoscaling.karpenter.pod import is_owned_by
from fairlead.engine.autoscaling.karpenter.provisioning.nodeclaim_request import NodeClaimRequest
from fairlead.engine.core.instant import Instant, seconds, to_seconds

_DISRUPTED: Final = Taint(key=DISRUPTED_TAINT, effect="NoSchedule")
_SHOWN_CONDITIONS: Final = (CONSOLIDATABLE, DISRUPTION_REASON, DRIFTED, INITIALIZED_CONDITION)
# Fields of a replacement that recorded timelines leave out.
_LEFT_OUT: Final = ("annotations", "cheapestPrice", "labels")


def decide_timeline(case: Json) -> Json:
    """Return the results of all steps, and the NodeClaims and pods at the end."""
    timeline = _Timeline(case)
    return {"steps": [timeline.step(one) for one in case["steps"]], "final": timeline.final()}


class _Timeline(Scene):
    """A scene in which NodeClaims become nodes and pods are bound.

    The keys of `_requests` are the names of the NodeClaims that the timeline created. The values
    are the NodeClaimRequests for which the NodeClaims were created. `_targets` maps the pods of the
    latest provisioning pass to the names of their nodes or NodeClaims.
    """

    def __init__(self, case: Json) -> None:
        super().__init__({**case, "during": None})
        self._begun = self.now
        self._created = 0
        self._recreated = 0
        self._requests: dict[str, NodeClaimRequest] = {}
        self._targets: dict[str, str] = {}
        self._actions: Mapping[str, Callable[[], Any]] = {
            "provision": self._provision,
            "launch": self._launch,
            "register": self._register,
            "initialize": self._initialize,
            "bind": self._bind,
            "claimStatus": self._claim_status,
            "expire": self._expire,
            "disrupt": self._disrupt,
            "queue": self._process_queue,
            "terminate": self._terminate,
        }

    def step(self, step: Json) -> Json:
        """Advance the clock, apply the changes of `step`, and run its actions.

        The returned object has the result of each action, keyed by the action's name. The object
        also has the last error of a change (`opError`) and the seconds since the start of the
        timeline (`t`).
        """
        self.now += seconds(step.get("advanceSeconds", 0))
        found: Json = {}
        for change in step.get("ops") or ():
            missing = self._missing(change)
            if missing:
                found["opError"] = missing  # The recordings contain the last error of a step.
            else:
                self.change(change)
        for name in step["run"]:
            result = self._actions[name]()
            if result is not None:
                found[name] = result
        found["t"] = to_seconds(self.now - self._begun)
        return found

    def final(self) -> Json:
        """Return the NodeClaims, and the node of each pod, at the end of the timeline."""
        return {
            "nodeClaims": {n: _shown_claim(c) for n, c in self.cluster.node_claims.items()},
            "pods": {
                shown_pod(key): pod.spec.node_name or "" for key, pod in self.cluster.pods.items()
            },
        }

    # --- Karpenter -------------------------------------------------------------------------------

    def _provision(self) -> Json:
        if not self.cluster.is_synced():
            return {"notSynced": True}
        result = self.provisioner.provision(self.now)
        requests = sorted(result.requests, key=lambda one: min(one.pods))
        self._targets = {}
        created: Json = {}
        for request in requests:
            name = self._create(request)
            created[name] = {
                "nodePool": request.pool.name,
                "pods": [shown_pod(key) for key in request.pods],
                "instanceTypes": len(request.instance_types),
            }
            self._targets |= dict.fromkeys(request.pods, name)
        existing: Json = {}
        for node in result.existing:
            if node.pods:
                self.cluster.nominate(node.state.key, self.now)
                existing[node.state.name] = [shown_pod(one.key) for one in node.pods]
                self._targets |= {one.key: node.state.name for one in node.pods}
        errors = {shown_pod(key): shown_text(text) for key, text in result.errors.items()}
        return {"created": created, "errors": errors, "existing": existing}

    def _create(self, request: NodeClaimRequest) -> str:
        """Create a NodeClaim that is not launched yet; return the name of the NodeClaim."""
        self._created += 1
        name = f"{request.pool.name}-new{self._created}"
        self._requests[name] = request
        template = request.pool.spec.template.spec
        annotations = {
            key: value
            for key, value in request.pool.metadata.annotations.items()
            if key in (NODE_POOL_HASH, NODE_POOL_HASH_VERSION)
        }
        claim = read_object(
            "NodeClaim",
            {
                "metadata": {
                    "name": name,
                    "creationTimestamp": format_timestamp(self.now),
                    "labels": request.labels,
                    "annotations": {**(request.annotations or {}), **annotations},
                }
            },
        )
        spec = NodeClaimSpec(
            taints=template.taints,
            startup_taints=template.startup_taints,
            node_class_ref=template.node_class_ref,
            expire_after=template.expire_after,
            termination_grace_period=template.termination_grace_period,
        )
        self.cluster.put(replace(claim, spec=spec), self.now)
        return name

    def _claim_status(self) -> Json:
        shown: Json = {}
        for name, claim in sorted(self.cluster.node_claims.items()):
            pool = self.cluster.node_pools.get(claim.node_pool)
            updated = self.conditions.updated(claim, pool, self.now)[0]
            self.cluster.put(updated, self.now)
            kinds = (CONSOLIDATABLE, DRIFTED)
            shown[name] = [kind for kind in kinds if updated.is_true(kind)]
        return shown

    def _expire(self) -> list[str]:
        expired = []
        for name, claim in sorted(self.cluster.node_claims.items()):
            due = expires_at(claim)
            if due is not None and self.now >= due:
                self._start_deleting(claim)
                expired.append(name)
        return expired

    def _disrupt(self) -> Json:
        self._untaint_others()
        shown = self.shown_loop()
        for command in shown["commands"]:
            for one in command.get("replacements", ()):
                for field in _LEFT_OUT:
                    one.pop(field, None)
        return shown

    def _untaint_others(self) -> None:
        """Remove DISRUPTED_TAINT from all nodes that are neither being disrupted nor being removed.

        Also remove the condition DISRUPTION_REASON from the NodeClaims of these nodes. A node is
        being disrupted if a queued command names the node.
        """
        for node in self.cluster.nodes(self.now):
            if node.claim is None or node.key in self.queue.keys or node.marked_for_deletion:
                continue
            self._set_disrupted(node.claim.name, node.node, disrupted=False)

    def _set_disrupted(self, name: str, node: Node | None, *, disrupted: bool) -> None:
        claim = self.cluster.node_claims.get(name)
        if claim is not None:
            changed = (
                with_condition(claim, DISRUPTION_REASON, "Disrupted", self.now)
                if disrupted
                else without_condition(claim, DISRUPTION_REASON)
            )
            self.cluster.put(changed, self.now)
        if node is not None:
            kept = tuple(one for one in node.spec.taints if one.key != DISRUPTED_TAINT)
            taints = (*kept, _DISRUPTED) if disrupted else kept
            if taints != node.spec.taints:
                self.cluster.put(replace(node, spec=replace(node.spec, taints=taints)), self.now)

    def start(self, command: DisruptionCommand, now: Instant) -> None:
        """Taint the candidate nodes, create their replacements, and queue `command`."""
        for one in command.candidates:
            self._set_disrupted(one.claim.name, one.node.node, disrupted=True)
        names = [self._create(request) for request in command.replacements]
        self.queue.add(command, names, now)

    def _process_queue(self) -> list[str]:
        shown = []
        for queued in self.queue.commands:
            progress = self.queue.progress(queued, self.now)
            names = sorted(one.name for one in queued.command.candidates)
            shown.append(f"{'+'.join(names)}: {progress}")
            if progress is CommandProgress.WAITING:
                continue
            if self.queue.is_ready(queued):
                for one in queued.command.candidates:
                    claim = self.cluster.node_claims.get(one.claim.name)
                    if claim is not None:
                        self._start_deleting(claim)
            failed = progress is CommandProgress.FAILED
            self.queue.remove(queued, failed=failed)
            for one in queued.command.candidates if failed else ():
                node = self.cluster.node_objects.get(one.node.node_name)
                self._set_disrupted(one.claim.name, node, disrupted=False)
        return shown

    # --- the provider and the kubelets -----------------------------------------------------------

    def _start_deleting(self, claim: NodeClaim) -> None:
        if not claim.metadata.deletion_timestamp:
            meta = replace(claim.metadata, deletion_timestamp=format_timestamp(self.now))
            self.cluster.put(replace(claim, metadata=meta), self.now)

    def _launch(self) -> Json:
        shown: Json = {}
        for name, claim in sorted(self.cluster.node_claims.items()):
            if claim.is_true(LAUNCHED) or name not in self._requests:
                continue
            request = self._requests[name]
            table = self.overlaid.table(request.pool)
            names = {one.name for one in request.instance_types}
            types = tuple(one for one in table.types if one.name in names)
            stored = request.stored_requirements
            chosen = replace_types(request, types, stored).launch()
            if chosen is None:
                continue
            self.cluster.put(self._launched(claim, *chosen), self.now)
            instance_type, offering = chosen
            shown[name] = {
                "instanceType": instance_type.name,
                "zone": offering.zone,
                "capacityType": offering.capacity_type,
                "price": offering.price,
            }
        return shown

    def _launched(
        self, claim: NodeClaim, instance_type: InstanceType, offering: Offering
    ) -> NodeClaim:
        labels = dict(claim.metadata.labels)
        for one in (*instance_type.requirements, *offering.requirements):
            if one.single is not None:
                labels[one.key] = one.single
        status = NodeClaimStatus(
            capacity=_quantities(instance_type.capacity),
            allocatable=_quantities(instance_type.allocatable),
            provider_id=f"golden:///{claim.name}",
            conditions=claim.status.conditions,
        )
        meta = replace(claim.metadata, labels=labels)
        launched = replace(claim, metadata=meta, status=status)
        return with_condition(launched, LAUNCHED, LAUNCHED, self.now)

    def _register(self) -> None:
        for name, claim in sorted(self.cluster.node_claims.items()):
            if not claim.is_true(LAUNCHED) or claim.is_true(REGISTERED_CONDITION):
                continue
            labels = {**claim.metadata.labels, HOSTNAME: name, REGISTERED: "true"}
            node = read_object(
                "Node",
                {
                    "metadata": {
                        "name": name,
                        "labels": labels,
                        "creationTimestamp": format_timestamp(self.now),
                    },
                    "spec": {"providerID": claim.status.provider_id},
                    "status": {
                        "capacity": claim.status.capacity,
                        "allocatable": claim.status.allocatable,
                    },
                },
            )
            taints = (*claim.spec.taints, *claim.spec.startup_taints)
            self.cluster.put(replace(node, spec=replace(node.spec, taints=taints)), self.now)
            registered = with_condition(claim, REGISTERED_CONDITION, REGISTERED_CONDITION, self.now)
            status = replace(registered.status, node_name=name)
            self.cluster.put(replace(registered, status=status), self.now)

    def _initialize(self) -> list[str]:
        done = []
        for name, claim in sorted(self.cluster.node_claims.items()):
            node = self.cluster.node_objects.get(claim.status.node_name)
            if (
                node is None
                or not claim.is_true(REGISTERED_CONDITION)
                or claim.is_true(INITIALIZED_CONDITION)
            ):
                continue
            startup = {(one.key, one.effect) for one in claim.spec.startup_taints}
            taints = tuple(t for t in node.spec.taints if (t.key, t.effect) not in startup)
            meta = replace(node.metadata, labels={**node.metadata.labels, INITIALIZED: "true"})
            spec = replace(node.spec, taints=taints)
            self.cluster.put(replace(node, metadata=meta, spec=spec), self.now)
            ready = with_condition(claim, INITIALIZED_CONDITION, INITIALIZED_CONDITION, self.now)
            self.cluster.put(ready, self.now)
            done.append(name)
        return done

    def _bind(self) -> Json:
        bound: Json = {}
        nodes = {node.name: node for node in self.cluster.nodes(self.now)}
        for key, name in sorted(self._targets.items()):
            pod = self.cluster.pods.get(key)
            state = nodes.get(name)
            if pod is None or pod.spec.node_name or state is None or state.node is None:
                continue
            tainted = any(one.key == DISRUPTED_TAINT for one in state.node.spec.taints)
            if not state.initialized or tainted:
                continue
            self._put_pod(
                replace(
                    pod,
                    spec=replace(pod.spec, node_name=state.node_name),
                    status=replace(pod.status, phase="Running"),
                )
            )
            bound[shown_pod(key)] = name
        return bound

    def _put_pod(self, pod: Pod) -> None:
        """Store `pod`; if the change is a pod event, record it on the NodeClaim of the pod's node.

        The function `is_pod_event` decides which changes are pod events.
        """
        old = self.cluster.pods.get(pod.key)
        self.cluster.put(pod, self.now)
        if is_pod_event(old, pod):
            for claim in list(self.cluster.node_claims.values()):
                if claim.status.node_name == pod.spec.node_name:
                    self.cluster.put(with_pod_event(claim, self.now), self.now)

    def change(self, change: Json) -> None:
        """Apply `change`, and record pod events in the same way as `_put_pod`.

        If `change` deletes a pod that has a node, the pod first becomes terminating.
        """
        if change["op"] == "apply" and change["kind"] == "Pod":
            self._put_pod(read_object("Pod", change["object"]))
            return
        if change["op"] == "delete" and change["kind"] == "Pod":
            name = change["name"]
            pod = self.cluster.pods.get(name if "/" in name else f"default/{name}")
            if pod is not None and pod.spec.node_name and not is_terminating(pod):
                stamp = format_timestamp(self.now)
                self._put_pod(
                    replace(pod, metadata=replace(pod.metadata, deletion_timestamp=stamp))
                )
        super().change(change)

    def _missing(self, change: Json) -> str:
        """Return the API server's error if `change` deletes an absent pod, otherwise ""."""
        if change["op"] != "delete" or change["kind"] != "Pod":
            return ""
        name = change["name"]
        exists = (name if "/" in name else f"default/{name}") in self.cluster.pods
        return "" if exists else f'pods "{name}" not found'

    def _terminate(self) -> Json:
        """Remove the NodeClaims that have a deletion timestamp, and remove their nodes and pods.

        Pods of DaemonSets are not recreated; all other pods are recreated as pending pods.
        """
        shown: Json = {}
        for name, claim in sorted(self.cluster.node_claims.items()):
            if not claim.metadata.deletion_timestamp:
                continue
            node = self.cluster.node_objects.get(claim.status.node_name)
            recreated = []
            if node is not None:
                for pod in self.cluster.pods_on(node.metadata.name).pods:
                    self.cluster.remove(pod, self.now)
                    if not is_owned_by(pod, "DaemonSet"):
                        recreated.append(self._recreate(pod))
                self.cluster.remove(node, self.now)
            self.cluster.remove(claim, self.now)
            shown[name] = recreated
        return shown

    def _recreate(self, pod: Pod) -> str:
        base = pod.metadata.name.partition("~")[0]
        name = f"{base}~{self._recreated}"
        self._recreated += 1
        fresh = read_object("Pod", {"metadata": {"name": name}, "spec": {}})
        meta = replace(pod.metadata, name=name, uid=f"u-{name}", deletion_timestamp="")
        self.cluster.put(
            replace(fresh, metadata=meta, spec=replace(pod.spec, node_name="")), self.now
        )
        return name


def replace_types(
    request: NodeClaimRequest, types: tuple[InstanceType, ...], stored: Any
) -> NodeClaimRequest:
    """Return a copy of `request` with the instance types `types`, but without annotations.

    `stored` are the requirements of the copy.
    """
    return NodeClaimRequest(
        request.pool, stored, types, request.requests, request.pods, well_known=WELL_KNOWN
    )


def _quantities(amounts: Mapping[str, int]) -> dict[str, str | int | float]:
    return {n: f"{a}m" if n == "cpu" else str(a) for n, a in amounts.items()}


def _shown_claim(claim: NodeClaim) -> Json:
    labels = claim.metadata.labels
    return {
        "nodePool": claim.node_pool,
        "instanceType": labels.get(INSTANCE_TYPE, ""),
        "zone": labels.get(ZONE, ""),
        "capacityType": labels.get(CAPACITY_TYPE, ""),
        "deleting": bool(claim.metadata.deletion_timestamp),
        "true": [kind for kind in _SHOWN_CONDITIONS if claim.is_true(kind)],
    }
