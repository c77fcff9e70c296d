"""FinalState: checks the properties of a cluster at rest, whose objects no longer change.

check      workloads have their pods, no object waits without a reason, no object is left over
compare    a second process that starts from the same store changes no object; this proves that the
           first process has lost no state, and that every pending pod really fits on no node
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from operator import itemgetter
from typing import Final

from fairlead.api.json import Json
from fairlead.api.nodes.autoscaler_taint import DISRUPTED_TAINT
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import NAMESPACE, NODE, POD
from fairlead.apiserver.registry.store import Store
from fairlead.engine.autoscaling.karpenter.labels import NODE_POOL
from fairlead.engine.batch.info.group import GROUP_NAME_ANNOTATION
from fairlead.engine.core.instant import Instant, seconds
from fairlead.testing.torture.auditor import OUTAGE_TAINTS
from fairlead.testing.torture.law import Law, LawBrokenError

_ENDED: Final = ("Succeeded", "Failed")
_PATIENCE: Final = seconds(120)  # beyond a pod's grace period
_VOLATILE: Final = ("Event", "Lease", "Node", "ConfigMap cluster-autoscaler-status")


class FinalState:
    """Checks the contents of a store at rest; a check that fails raises LawBrokenError."""

    def __init__(
        self,
        store: Store,
        checked: Counter[str],
        now: Instant,
        unexpected_jobs: Collection[tuple[str, str]] = (),
    ) -> None:
        """Read the contents of `store`; `checked` counts the checks of each `Law`, by its name.

        `unexpected_jobs` contains (namespace, name) of each Job that a CronJob reported as
        unexpected.
        """
        self._unexpected_jobs = unexpected_jobs
        self._checked = checked
        self._now = now
        self._objects = contents(store)
        self._kinds: dict[str, list[Json]] = defaultdict(list)
        for (kind, _, _), obj in self._objects.items():
            self._kinds[kind].append(obj)
        self._nodes = {one["metadata"]["name"]: one for one in self._kinds[NODE.kind]}
        self._pods = self._kinds[POD.kind]
        self._owned: dict[str, list[Json]] = defaultdict(list)
        for pod in self._pods:
            for owner in pod["metadata"].get("ownerReferences", ()):
                self._owned[owner["uid"]].append(pod)

    def check(self) -> None:
        """Check all objects of the cluster; raise LawBrokenError at the first broken law."""
        for pod in self._pods:
            self._check_pod(pod)
        for node in self._nodes.values():
            self._check_taints(node)
        self._check_owners()
        self._check_replica_sets()
        self._check_observed()
        self._check_budgets()
        self._check_endpoints()
        self._check_quotas()
        self._check_gangs()
        self._check_cron_jobs()
        self._check_claims()
        self._check_node_claims()
        for namespace in self._kinds[NAMESPACE.kind]:
            self._require(not _is_ending(namespace), namespace, "is still being deleted")

    def has_lost_nodes(self, store: Store) -> bool:
        """Return whether Cluster Autoscaler has removed Nodes of this FinalState from `store`.

        The caller has run a second process on `store`. The second process may remove a Node that
        the first process kept, if the second process finds room for the Node's pods elsewhere. The
        two processes can differ because they have made different searches before. A search for a
        pod's place first tries the node that an earlier search found for the pod. After that, the
        search tries the other nodes, and starts after the node where the last search ended.

        upstream: simulator/scheduling/hinting_simulator.go; clustersnapshot/predicate/
        plugin_runner.go: RunFiltersUntilPassingNode, lastIndex
        """
        if self._kinds["NodePool"]:
            return False  # Karpenter runs, not Cluster Autoscaler
        left = {key[2] for key in contents(store) if key[0] == "Node"}
        return not self._nodes.keys() <= left

    def compare(self, store: Store) -> None:
        """Check that a second process, which has run on `store`, has changed no object."""
        then = contents(store)
        for key, obj in self._objects.items():
            if is_volatile(obj):
                continue
            now = then.get(key)
            self._require(now is not None, obj, "was deleted by a new process")
            assert now is not None
            if key[0] == POD.kind and not obj["spec"].get("nodeName"):
                node = now["spec"].get("nodeName")
                self._require(
                    not node, obj, f"waited, and a new process binds it to {node}", Law.RUNS
                )
            self._require(
                _comparable(obj) == _comparable(now),
                obj,
                f"a new process changes it: {difference(_comparable(obj), _comparable(now))}",
                Law.SETTLES,
            )
        for key in sorted(then.keys() - self._objects.keys()):
            self._require(
                is_volatile(then[key]), then[key], "is created by a new process", Law.SETTLES
            )

    # --- pods ---------------------------------------------------------------------------------

    def _check_pod(self, pod: Json) -> None:
        meta, status, name = pod["metadata"], pod["status"], pod["spec"].get("nodeName")
        if not name:
            if self._lacks_pod_group(pod):
                return
            waits = status.get("conditions", ())
            why = [c.get("message") for c in waits if c["type"] == "PodScheduled"]
            self._require(bool(why and why[0]), pod, "waits without a reason", Law.REASON)
            return
        node = self._nodes.get(name)
        self._require(node is not None, pod, f"is on {name}, which does not exist")
        if node is None or not _is_ready(node):
            return
        if _is_ending(pod):
            due = parse_timestamp(meta["deletionTimestamp"]) + _PATIENCE
            self._require(self._now < due, pod, "does not end")
            return
        phase = status.get("phase")
        self._require(phase in (*_ENDED, "Running"), pod, f"is {phase} on {name}")

    def _lacks_pod_group(self, pod: Json) -> bool:
        """Return whether the PodGroup of `pod` was deleted; batch schedulers ignore such pods."""
        # upstream: pkg/scheduler/cache/cache.go:Snapshot (jobs without a PodGroup are skipped)
        group = pod["metadata"].get("annotations", {}).get(GROUP_NAME_ANNOTATION)
        names = {
            (one["metadata"]["namespace"], one["metadata"]["name"])
            for one in self._kinds["PodGroup"]
        }
        return bool(group) and (pod["metadata"]["namespace"], group) not in names

    def _check_taints(self, node: Json) -> None:
        keys = {one["key"] for one in node["spec"].get("taints", ())} & set(OUTAGE_TAINTS)
        self._require(_is_ready(node) != bool(keys), node, f"has the taints {sorted(keys)}")

    # --- workloads ----------------------------------------------------------------------------

    def _check_owners(self) -> None:
        """Check that no object exists without its owner, except pods and NodeClaims in deletion.

        A deleted NodeClaim stays until its Node is drained. A deleted pod stays until the kubelet
        of its node confirms that the pod has ended.

        upstream: pkg/controller/podgc/gc_controller.go: gcTerminating, isPodTerminating
        """
        uids = {obj["metadata"]["uid"] for obj in self._objects.values()}
        for obj in self._objects.values():
            owners = obj["metadata"].get("ownerReferences", ())
            is_waiting = self._waits_for_kubelet(obj) or _is_draining(obj)
            if owners and not is_volatile(obj) and not is_waiting:
                is_owned = any(one["uid"] in uids for one in owners)
                self._require(is_owned, obj, "outlives its owner")

    def _waits_for_kubelet(self, obj: Json) -> bool:
        """Return whether `obj` is a pod that is being deleted and whose node is not ready."""
        node = self._nodes.get(obj["spec"].get("nodeName", "")) if obj["kind"] == POD.kind else None
        return node is not None and _is_ending(obj) and not _is_ready(node)

    def _check_replica_sets(self) -> None:
        refused = {one["metadata"]["namespace"] for one in self._kinds["ResourceQuota"]}
        for one in self._kinds["ReplicaSet"]:
            if _is_ending(one):
                continue
            alive = [p for p in self._owned[one["metadata"]["uid"]] if _is_alive(p)]
            wanted = one["spec"].get("replicas", 1)
            enough = len(alive) == wanted
            if one["metadata"]["namespace"] in refused:
                enough = len(alive) <= wanted
            self._require(enough, one, f"has {len(alive)} pods, wants {wanted}")

    def _check_cron_jobs(self) -> None:
        """Check that the status of a CronJob lists its unfinished Jobs; check the history limits.

        A CronJob whose concurrencyPolicy is not Allow runs at most one Job at a time.

        As in upstream, a Job may be missing from the list. A Job is missing if the process was
        killed between the creation of the Job and the write of the CronJob's status. The CronJob
        then has an UnexpectedJob Event that names the Job.
        """
        for one in self._kinds["CronJob"]:
            uid, spec, status = one["metadata"]["uid"], one["spec"], one.get("status", {})
            jobs = [job for job in self._kinds["Job"] if _is_owned(job, uid)]
            ended = {end: [job for job in jobs if _has(job, end)] for end in ("Complete", "Failed")}
            running = {
                job["metadata"]["name"] for job in jobs if not any(job in e for e in ended.values())
            }
            listed = {entry["name"] for entry in status.get("active") or ()}
            space = one["metadata"]["namespace"]
            lost = {name for name in running - listed if (space, name) in self._unexpected_jobs}
            is_complete = listed | lost == running
            self._require(is_complete, one, f"lists {sorted(listed)} of {sorted(running)}")
            if spec["concurrencyPolicy"] != "Allow":
                self._require(len(listed) < 2, one, f"runs {sorted(listed)} at a time")
            for end, limit in (("Complete", "successful"), ("Failed", "failed")):
                kept, most = len(ended[end]), spec[f"{limit}JobsHistoryLimit"]
                self._require(kept <= most, one, f"keeps {kept} {limit} Jobs of {most}")

    def _check_claims(self) -> None:
        """Check that the claims of ready pods are bound, and that claims and volumes fit together.

        The volume of a bound claim must refer to this claim. A volume without a claim must have the
        reclaim policy Retain.
        """
        claims = {
            (one["metadata"]["namespace"], one["metadata"]["name"]): one
            for one in self._kinds["PersistentVolumeClaim"]
        }
        volumes = {one["metadata"]["name"]: one for one in self._kinds["PersistentVolume"]}
        for pod in self._pods:
            for volume in pod["spec"].get("volumes", ()) if _has(pod, "Ready") else ():
                key = (
                    pod["metadata"]["namespace"],
                    volume.get("persistentVolumeClaim", {}).get("claimName", ""),
                )
                if key[1]:
                    phase = claims.get(key, {}).get("status", {}).get("phase")
                    self._require(
                        phase == "Bound", pod, f"runs while its claim {key[1]} is {phase}"
                    )
        for (namespace, name), claim in claims.items():
            if claim.get("status", {}).get("phase") == "Bound":
                bound = volumes.get(claim["spec"].get("volumeName", ""), {"spec": {}})
                other = bound["spec"].get("claimRef", {})
                is_mutual = (other.get("namespace"), other.get("name")) == (namespace, name)
                self._require(is_mutual, claim, "is bound to a volume that is not bound to it")
        for volume in volumes.values():
            other = volume["spec"].get("claimRef", {})
            is_claimed = (other.get("namespace"), other.get("name")) in claims
            is_kept = volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
            self._require(is_claimed or is_kept, volume, "outlives its claim")

    def _check_node_claims(self) -> None:
        """Check that NodeClaims have Nodes, and that Nodes of NodePools have NodeClaims and pods.

        A NodeClaim may stay in deletion while its Node still has pods, because do-not-disrupt or a
        disruption budget may protect these pods. A Node may be empty if it is not ready. Any Node
        may be empty while a pod is pending or a NodeClaim is in deletion: Karpenter may keep the
        Node for the pods that must be placed.
        """
        claims = {one["metadata"]["name"]: one for one in self._kinds["NodeClaim"]}
        for name, held in claims.items():
            node = self._nodes.get(held.get("status", {}).get("nodeName", ""))
            self._require(node is not None, held, "has no Node")
            is_blocked = bool(self._movable_pods(name))
            self._require(is_blocked or not _is_ending(held), held, "does not end")
        is_expecting = any(_is_ending(one) for one in claims.values()) or any(
            not pod["spec"].get("nodeName") for pod in self._pods
        )
        pools = {one["metadata"]["name"]: one for one in self._kinds["NodePool"]}
        for name, node in self._nodes.items():
            pool = pools.get(node["metadata"].get("labels", {}).get(NODE_POOL, ""))
            if pool is None:
                continue
            claim = claims.get(name)
            self._require(claim is not None, node, "has no NodeClaim")
            assert claim is not None
            keys = [one["key"] for one in node["spec"].get("taints", ())]
            is_left = DISRUPTED_TAINT in keys and not _is_ending(claim)
            self._require(not is_left, node, "has the taint of a disruption that has ended")
            is_kept = (
                _is_ending(claim)
                or not _is_ready(node)
                or bool(self._movable_pods(name))
                or is_expecting
            )
            self._require(is_kept, node, "is empty, and Karpenter keeps it")

    def _movable_pods(self, node: str) -> list[Json]:
        """Return the unfinished pods on `node` that no DaemonSet owns."""
        here = [pod for pod in self._pods if pod["spec"].get("nodeName") == node]
        owners = (pod["metadata"].get("ownerReferences", ()) for pod in here)
        of_daemons = [any(one["kind"] == "DaemonSet" for one in refs) for refs in owners]
        return [
            pod
            for pod, of_daemon in zip(here, of_daemons, strict=True)
            if not of_daemon and pod["status"].get("phase") not in _ENDED
        ]

    def _check_observed(self) -> None:
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"):
            for one in self._kinds[kind]:
                generation = one["metadata"].get("generation")
                seen = one.get("status", {}).get("observedGeneration")
                self._require(seen == generation, one, f"observed {seen} of {generation}")
        for one in self._kinds["Deployment"]:
            status = one.get("status", {})
            alive = [
                pod
                for owned in self._kinds["ReplicaSet"]
                if _is_owned(owned, one["metadata"]["uid"])
                for pod in self._owned[owned["metadata"]["uid"]]
                if _is_alive(pod)
            ]
            self._require(
                status.get("replicas", 0) == len(alive),
                one,
                f"counts {status.get('replicas', 0)} of {len(alive)} pods",
            )

    def _check_budgets(self) -> None:
        """Check that budgets count the pods that are Ready and not being deleted.

        The phase of a pod does not matter. A pod that PodGC has marked as Failed may be Ready if
        its node has returned.

        upstream: pkg/controller/disruption/disruption.go: countHealthyPods
        """
        for one in self._kinds["PodDisruptionBudget"]:
            labels = one["spec"].get("selector", {}).get("matchLabels", {})
            found = self._selected(one, labels)
            healthy = [p for p in found if not _is_ending(p) and _has(p, "Ready")]
            seen = one.get("status", {}).get("currentHealthy")
            self._require(
                seen == len(healthy), one, f"counts {seen} of {len(healthy)} healthy pods"
            )

    def _check_endpoints(self) -> None:
        slices: dict[str, set[str]] = defaultdict(set)
        for one in self._kinds["EndpointSlice"]:
            service = one["metadata"].get("labels", {}).get("kubernetes.io/service-name", "")
            for endpoint in one.get("endpoints") or ():
                if endpoint["conditions"].get("ready"):
                    slices[f"{one['metadata']['namespace']}/{service}"].add(
                        endpoint.get("targetRef", {}).get("name", "")
                    )
        for one in self._kinds["Service"]:
            selector = one["spec"].get("selector")
            if selector:
                key = f"{one['metadata']['namespace']}/{one['metadata']['name']}"
                ready = {
                    p["metadata"]["name"]
                    for p in self._selected(one, selector)
                    if _is_alive(p) and _has(p, "Ready") and p["status"].get("podIP")
                }
                odd = sorted(slices[key] ^ ready)
                self._require(not odd, one, f"endpoints differ: {odd}")

    def _selected(self, of: Json, labels: Mapping[str, str]) -> Iterator[Json]:
        for pod in self._pods:
            meta = pod["metadata"]
            is_near = meta["namespace"] == of["metadata"]["namespace"]
            if is_near and labels.items() <= meta.get("labels", {}).items():
                yield pod

    def _check_quotas(self) -> None:
        for one in self._kinds["ResourceQuota"]:
            if "pods" not in one["spec"].get("hard", {}):
                continue
            mine = [
                pod
                for pod in self._pods
                if pod["metadata"]["namespace"] == one["metadata"]["namespace"]
                and pod["status"].get("phase") not in _ENDED
            ]
            # A pod that does not end counts until its deletionTimestamp plus its grace period.
            staying = sum(not pod["metadata"].get("deletionTimestamp") for pod in mine)
            used = one.get("status", {}).get("used", {}).get("pods")
            counts = map(str, range(staying, len(mine) + 1))
            self._require(used in counts, one, f"counts {used} of {len(mine)} pods", Law.QUOTA)

    def _check_gangs(self) -> None:
        """Check that no gang runs in part.

        A gang with a Succeeded pod passes the check, because its ended pods may be deleted before
        its other pods end.
        """
        members: dict[str, list[Json]] = defaultdict(list)
        for pod in self._pods:
            name = pod["metadata"].get("annotations", {}).get(GROUP_NAME_ANNOTATION)
            if name and not _is_ending(pod) and pod["status"].get("phase") != "Failed":
                members[f"{pod['metadata']['namespace']}/{name}"].append(pod)
        for one in self._kinds["PodGroup"]:
            key = f"{one['metadata']['namespace']}/{one['metadata']['name']}"
            minimum = one["spec"].get("minMember", 0)
            placed = sum(bool(pod["spec"].get("nodeName")) for pod in members[key])
            has_run = any(pod["status"].get("phase") == "Succeeded" for pod in members[key])
            is_half_up = 0 < placed < minimum <= len(members[key]) and not has_run
            self._require(not is_half_up, one, f"is half up: {placed} of {minimum}", Law.WHOLE_GANG)

    def _require(self, holds: bool, obj: Json, message: str, law: Law = Law.NOT_STUCK) -> None:  # noqa: FBT001
        self._checked[law.name] += 1
        if not holds:
            meta = obj["metadata"]
            key = f"{meta.get('namespace', '')}/{meta['name']}".lstrip("/")
            raise LawBrokenError(law, f"{obj['kind']} {key} {message}")


def is_volatile(obj: Json) -> bool:
    """Return whether `obj` may change although the cluster is at rest.

    True for an Event, a Lease, a Node (because of heartbeats), and the status ConfigMap of the
    cluster autoscaler.
    """
    kind = obj["kind"]
    return kind in _VOLATILE or f"{kind} {obj['metadata']['name']}" in _VOLATILE


def contents(store: Store) -> dict[tuple[str, str, str], Json]:
    """Return all objects of `store` except events, by (kind, namespace, name)."""
    return {
        (kind.kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
        for kind in store.storage.kinds()
        if kind.resource != "events"
        for obj in store.list(kind)
    }


def difference(old: object, new: object, path: str = "") -> str:
    """Return a text: the first path at which `old` and `new` differ, and both values there."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                return difference(old.get(key), new.get(key), f"{path}.{key}")
    return f"{path} {old!r} -> {new!r}"


def _comparable(obj: Json) -> Json:
    """Return `obj` without the fields that may change if a new control plane process starts.

    When Karpenter starts, it receives a create event for every pod, and sets lastPodEventTime of
    all NodeClaims with pods. As a result, the condition Consolidatable of these NodeClaims gets a
    new time and another position in the list of conditions.

    The progress deadline of a Deployment may expire while the new process runs. So only the type of
    the condition Progressing is kept for a rollout that is unfinished or has missed its deadline.

    upstream: pkg/controllers/nodeclaim/podevents/controller.go: Register, whose predicate has no
    CreateFunc; nodeclaim/disruption/consolidation.go: Reconcile
    """
    meta = {
        key: value
        for key, value in obj["metadata"].items()
        if key not in ("resourceVersion", "managedFields")
    }
    if obj["kind"] == "Deployment":
        conditions = [
            {"type": one["type"]} if _is_unfinished(one) else one
            for one in obj["status"].get("conditions", ())
        ]
        status = {**obj["status"], "conditions": conditions}
        return {**obj, "metadata": meta, "status": status}
    if obj["kind"] != "NodeClaim":
        return {**obj, "metadata": meta}
    status = {key: one for key, one in obj["status"].items() if key != "lastPodEventTime"}
    conditions = [
        {**one, "lastTransitionTime": ""} if one["type"] == "Consolidatable" else one
        for one in sorted(status.get("conditions", ()), key=itemgetter("type"))
    ]
    return {**obj, "metadata": meta, "status": {**status, "conditions": conditions}}


def _is_unfinished(one: Json) -> bool:
    return one["type"] == "Progressing" and one["reason"] in (
        "ReplicaSetUpdated",
        "ProgressDeadlineExceeded",
    )


def _is_draining(obj: Json) -> bool:
    return obj["kind"] == "NodeClaim" and _is_ending(obj)


def _is_ending(obj: Json) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def _is_owned(obj: Json, uid: str) -> bool:
    return any(one["uid"] == uid for one in obj["metadata"].get("ownerReferences", ()))


def _is_alive(pod: Json) -> bool:
    return not _is_ending(pod) and pod["status"].get("phase") not in _ENDED


def _has(obj: Json, condition: str) -> bool:
    conditions = obj.get("status", {}).get("conditions", ())
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)


def _is_ready(node: Json) -> bool:
    return _has(node, "Ready")
