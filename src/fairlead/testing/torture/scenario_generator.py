"""Draws scenarios from seeds: 20 nodes, about 200 pods, and at least 100 changes per hour.

The cluster is crowded, so that preemption, gangs, queues and quotas are always in use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fairlead.api.json import Json
from fairlead.api.nodes.kubelet_behaviour import KUBELET
from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.batch.info.group import GROUP_NAME_ANNOTATION
from fairlead.engine.workloads.node_annotation import DRAIN
from fairlead.testing.random_cluster import Chance
from fairlead.testing.torture.control_plane_config import CLUSTER_AUTOSCALER, ZONES
from fairlead.testing.torture.fault.in_process_webhooks import configurations
from fairlead.testing.torture.fault.unreliable_plugin import RAISES, WAITS
from fairlead.testing.torture.karpenter_scenario import (
    KARPENTER,
    karpenter_changes,
    node_pools,
)
from fairlead.testing.torture.scenario import (
    Change,
    ClockJump,
    ControlPlaneOptions,
    Create,
    Delete,
    DeletePod,
    Patch,
    Restart,
    TortureScenario,
    WatchCut,
)

NODES: Final = 20
CHAOS_MS: Final = 3_600_000
CALM_MS: Final = 3_600_000
CHANGES: Final = 120
_FIRST_MS: Final = 60_000
NAMESPACES: Final = ("default", "team-a", "team-b")
PRIORITIES: Final = {"low": -5, "middle": 100, "high": 1000}
QUEUES: Final = {"q1": 1, "q2": 3}
STORAGE_CLASSES: Final = ("late", "at-once")
# Chosen by the number of the seed, so that 60 consecutive seeds contain every combination.
_AUTOSCALERS: Final = ("", CLUSTER_AUTOSCALER, KARPENTER)
_PLUGINS: Final = ("", RAISES, "", WAITS, "")
_WEBHOOKS_EVERY: Final = 4
_VOLCANO: Final = "scheduling.volcano.sh/v1beta1"
_CUT: Final = ("Pod", "Node", "ReplicaSet", "PodGroup", "PodDisruptionBudget", "Job")


def draw(seed: int, *, chaos_ms: int = CHAOS_MS, nodes: int = NODES) -> TortureScenario:
    """Return the scenario of `seed`: `nodes` nodes, and changes during the first `chaos_ms` ms.

    The scenario ends with a phase of CALM_MS without changes or faults.
    """
    return _Draw(seed, chaos_ms, nodes).scenario()


class _Draw:
    def __init__(self, seed: int, chaos_ms: int, nodes: int) -> None:
        self.seed = seed
        self.chance = Chance(seed)
        self.chaos_ms = chaos_ms
        self.nodes = [f"node-{number}" for number in range(1, nodes + 1)]
        self.counts = {"deploy": 0, "ds": 0, "sts": 0, "job": 0, "cron": 0, "pod": 0, "gang": 0}
        self.changes: list[Change] = []

    def scenario(self) -> TortureScenario:
        chance = self.chance
        seed = self.seed
        options = ControlPlaneOptions(
            autoscaler=_AUTOSCALERS[seed % len(_AUTOSCALERS)],
            plugin=_PLUGINS[seed % len(_PLUGINS)],
            webhooks=seed % _WEBHOOKS_EVERY == 0,
            extender=chance.one_in(5),
            batch=chance.of(("fairlead", "fairlead", "kube-batch", "volcano")),
            start_delay_ms=chance.of((0, 1000, 1000, 20_000)),
            ready_delay_ms=chance.of((0, 0, 5_000, 40_000)),
        )
        objects = (*self._environment(), *map(self._node, self.nodes))
        if options.webhooks:
            objects = (*objects, *configurations())
        if options.autoscaler == KARPENTER:
            objects = (*objects, *node_pools(seed))
        for one in self._workloads(len(self.nodes)):
            self.changes.append(Create(chance.below(_FIRST_MS), one))
        for _ in range(CHANGES * self.chaos_ms // CHAOS_MS):
            self._any_change(chance.below(self.chaos_ms))
        if options.autoscaler == KARPENTER:
            workloads = self.counts["deploy"]
            self.changes += karpenter_changes(seed, self.chaos_ms, NAMESPACES, workloads)
        self._calm_down()
        return TortureScenario(
            seed=self.seed,
            chaos_ms=self.chaos_ms,
            calm_ms=CALM_MS,
            options=options,
            objects=objects,
            changes=tuple(sorted(self.changes, key=lambda one: one.at_ms)),
        )

    # --- the initial objects ------------------------------------------------------------------

    def _environment(self) -> list[Json]:
        namespaces = [
            _named("v1", "Namespace", name)
            for name in (*NAMESPACES, "kube-system", "kube-node-lease")
        ]
        classes = [
            {**_named("scheduling.k8s.io/v1", "PriorityClass", name), "value": value}
            for name, value in PRIORITIES.items()
        ]
        queues = [
            {**_named(_VOLCANO, "Queue", name), "spec": {"weight": weight}}
            for name, weight in QUEUES.items()
        ]
        late = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "csi.example.com"}
        at_once = {**late, "volumeBindingMode": "Immediate", "reclaimPolicy": "Retain"}
        storage = [
            {**_named("storage.k8s.io/v1", "StorageClass", name), **mode}
            for name, mode in zip(STORAGE_CLASSES, (late, at_once), strict=True)
        ]
        return [*namespaces, *classes, *queues, *storage]

    def _node(self, name: str) -> Json:
        chance = self.chance
        size = {
            "cpu": str(chance.of((2, 4, 4, 8))),
            "memory": "32Gi",
            "pods": str(chance.of((8, 20, 110))),
        }
        labels = {HOSTNAME: name, ZONE: ZONES[self.nodes.index(name) % len(ZONES)]}
        if chance.one_in(3):
            labels["disk"] = "ssd"
        node = _named("v1", "Node", name)
        node["metadata"]["labels"] = labels
        node["spec"] = {}
        if chance.one_in(8):
            node["spec"]["taints"] = [{"key": "k", "effect": "NoSchedule"}]
        node["status"] = {"capacity": size, "allocatable": size}
        return node

    def _workloads(self, count: int) -> list[Json]:
        return [one for _ in range(count) for one in self._any_workload()]

    # --- workloads ----------------------------------------------------------------------------

    def _next(self, kind: str) -> str:
        self.counts[kind] += 1
        return f"{kind}-{self.counts[kind]}"

    def _any_workload(self) -> list[Json]:
        match self.chance.below(15):
            case 0 | 1 | 2 | 3:
                return self._deployment()
            case 12:
                return self._daemon_set()
            case 13:
                return self._autoscaled()
            case 14:
                return [self._cron_job()]
            case 4 | 5:
                return self._stateful_set()
            case 6 | 7:
                return [self._job()]
            case 8 | 9 | 10:
                return self._gang()
            case _:
                return [self._pod(self._next("pod"), self.chance.of(NAMESPACES))]

    def _deployment(self) -> list[Json]:
        name, namespace = self._next("deploy"), self.chance.of(NAMESPACES)
        one = self._replicated("Deployment", name, namespace)
        if self.chance.one_in(3):
            one["spec"]["strategy"] = {"type": "Recreate"}
        return [one, *self._around(name, namespace)]

    def _stateful_set(self) -> list[Json]:
        name, namespace = self._next("sts"), self.chance.of(NAMESPACES)
        one = self._replicated("StatefulSet", name, namespace)
        one["spec"]["serviceName"] = name
        if self.chance.one_in(2):
            one["spec"]["podManagementPolicy"] = "Parallel"
        if self.chance.one_in(3):
            self._claim_volumes(one)
        return [one, *self._around(name, namespace)]

    def _claim_volumes(self, stateful_set: Json) -> None:
        """Add a claim template to `stateful_set`, with a random retention policy."""
        chance, spec = self.chance, stateful_set["spec"]
        claim = {
            "storageClassName": chance.of(STORAGE_CLASSES),
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
        spec["persistentVolumeClaimRetentionPolicy"] = {
            event: chance.of(("Delete", "Delete", "Retain"))
            for event in ("whenDeleted", "whenScaled")
        }

    def _daemon_set(self) -> list[Json]:
        name, namespace = self._next("ds"), self.chance.of(NAMESPACES)
        one = self._replicated("DaemonSet", name, namespace)
        del one["spec"]["replicas"]
        return [one]

    def _autoscaled(self) -> list[Json]:
        """Return a Deployment with a HorizontalPodAutoscaler."""
        name, namespace = self._next("deploy"), self.chance.of(NAMESPACES)
        one = self._replicated("Deployment", name, namespace)
        scaler = _named("autoscaling/v2", "HorizontalPodAutoscaler", name, namespace)
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
        usage = {"type": "Utilization", "averageUtilization": 50 + self.chance.below(100)}
        metric = {"type": "Resource", "resource": {"name": "cpu", "target": usage}}
        scaler["spec"] = {
            "scaleTargetRef": target,
            "minReplicas": 1 + self.chance.below(3),
            "maxReplicas": 4 + self.chance.below(8),
            "metrics": [metric],
        }
        return [one, scaler]

    def _replicated(self, kind: str, name: str, namespace: str) -> Json:
        labels = {"app": name}
        one = _named("apps/v1", kind, name, namespace)
        template = {"metadata": {"labels": labels}, "spec": self._pod_spec()}
        replicas = 1 + self.chance.below(12)
        selector = {"matchLabels": labels}
        one["spec"] = {"replicas": replicas, "selector": selector, "template": template}
        return one

    def _around(self, name: str, namespace: str) -> list[Json]:
        """Return a Service and a disruption budget for a workload, each with probability 1/2."""
        found = []
        if self.chance.one_in(2):
            service = _named("v1", "Service", name, namespace)
            service["spec"] = {"selector": {"app": name}, "ports": [{"port": 80}]}
            found.append(service)
        if self.chance.one_in(2):
            budget = _named("policy/v1", "PodDisruptionBudget", name, namespace)
            limit: Json = self.chance.of(
                ({"minAvailable": 1}, {"maxUnavailable": 1}, {"minAvailable": "50%"})
            )
            budget["spec"] = {"selector": {"matchLabels": {"app": name}}, **limit}
            found.append(budget)
        return found

    def _job(self) -> Json:
        chance, name = self.chance, self._next("job")
        one = _named("batch/v1", "Job", name, chance.of(NAMESPACES))
        restart = chance.of(("Never", "OnFailure"))
        spec: Json = {**self._pod_spec(), "restartPolicy": restart}
        run = {RUN_DURATION: f"{10 + chance.below(300)}s"}
        one["spec"] = {
            "parallelism": 1 + chance.below(5),
            "completions": 1 + chance.below(8),
            "template": {"metadata": {"annotations": run}, "spec": spec},
        }
        if chance.one_in(3):
            one["spec"]["ttlSecondsAfterFinished"] = 60
        return one

    def _cron_job(self) -> Json:
        """Return a CronJob that runs every few minutes; a Job may last longer than that."""
        chance, name = self.chance, self._next("cron")
        one = _named("batch/v1", "CronJob", name, chance.of(NAMESPACES))
        job = self._job()["spec"]
        job.pop("ttlSecondsAfterFinished", None)
        one["spec"] = {
            "schedule": f"*/{1 + chance.below(10)} * * * *",
            "concurrencyPolicy": chance.of(("Allow", "Forbid", "Replace")),
            "successfulJobsHistoryLimit": chance.below(3),
            "failedJobsHistoryLimit": chance.below(2),
            "jobTemplate": {"spec": job},
        }
        if chance.one_in(3):
            one["spec"]["startingDeadlineSeconds"] = chance.of((20, 200))
        return one

    def _gang(self) -> list[Json]:
        chance, name, namespace = self.chance, self._next("gang"), self.chance.of(NAMESPACES)
        size = 2 + chance.below(6)
        group = _named(_VOLCANO, "PodGroup", name, namespace)
        queue = chance.of(("default", *QUEUES))
        group["spec"] = {"minMember": 1 + chance.below(size), "queue": queue}
        spec = self._pod_spec()
        marks = {GROUP_NAME_ANNOTATION: name}
        if chance.below(3):
            marks[RUN_DURATION] = f"{30 + chance.below(900)}s"
        return [group, *(self._member(f"{name}-{i}", namespace, spec, marks) for i in range(size))]

    def _member(self, name: str, namespace: str, spec: Json, marks: dict[str, str]) -> Json:
        pod = _named("v1", "Pod", name, namespace)
        pod["metadata"]["annotations"] = marks
        pod["spec"] = {**spec, "schedulerName": "volcano", "restartPolicy": "Never"}
        return pod

    def _pod(self, name: str, namespace: str) -> Json:
        pod = _named("v1", "Pod", name, namespace)
        pod["spec"] = self._pod_spec()
        if self.chance.one_in(2):
            pod["metadata"]["annotations"] = {RUN_DURATION: f"{5 + self.chance.below(600)}s"}
            pod["spec"]["restartPolicy"] = "Never"
        return pod

    def _pod_spec(self) -> Json:
        chance = self.chance
        requests = {"cpu": chance.of(("100m", "250m", "500m", "1", "2")), "memory": "256Mi"}
        spec: Json = {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]
        }
        if chance.one_in(2):
            spec["priorityClassName"] = chance.of(tuple(PRIORITIES))
        if chance.one_in(8):
            spec["nodeSelector"] = {"disk": "ssd"}
        if chance.one_in(5):
            spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
        if chance.one_in(6):
            spec["terminationGracePeriodSeconds"] = chance.of((0, 1, 120))
        return spec

    # --- changes ------------------------------------------------------------------------------

    def _any_change(self, at: int) -> None:
        """Add one random change, and possibly a second change that undoes it later."""
        change = self.chance.of(_CHANGES)
        change(self, at, self.chance.of(self.nodes), self.chance.of(NAMESPACES))

    def create(self, at: int, _node: str, _namespace: str) -> None:
        """Add the creation of a workload."""
        self.changes += [Create(at, one) for one in self._any_workload()]

    def delete(self, at: int, _node: str, namespace: str) -> None:
        """Add the deletion of a random workload."""
        kind, name = self._any_name()
        policy = self.chance.of(("Background", "Foreground", "Orphan"))
        self.changes.append(Delete(at, kind, name, namespace, policy))

    def update(self, at: int, _node: str, namespace: str) -> None:
        """Add a change of a workload's pod template or of a CronJob's schedule."""
        kind, name = self._any_name()
        if kind == "CronJob":
            schedule = {"spec": {"schedule": f"*/{1 + self.chance.below(10)} * * * *"}}
            self.changes.append(Patch(at, kind, name, schedule, namespace))
        elif kind != "Job":
            spec = {"containers": [{"name": "c", "image": f"i{at}"}]}
            patch = {"spec": {"template": {"spec": spec}}}
            self.changes.append(Patch(at, kind, name, patch, namespace))

    def end_pod(self, at: int, _node: str, _namespace: str) -> None:
        """Add the deletion or eviction of a pod."""
        chance = self.chance
        grace, nth = chance.of((None, None, 0, 5)), chance.below(1000)
        self.changes.append(DeletePod(at, nth, grace, evicts=chance.one_in(2)))

    def replace_node(self, at: int, node: str, _namespace: str) -> None:
        """Add the deletion of a node, and its creation with another capacity."""
        self.changes.append(Delete(at, "Node", node))
        self.changes.append(Create(at + self.chance.below(300_000), self._node(node)))

    def cordon(self, at: int, node: str, _namespace: str) -> None:
        """Add a change that sets `spec.unschedulable` of a node to true or false at random."""
        cordon = {"spec": {"unschedulable": self.chance.one_in(2)}}
        self.changes.append(Patch(at, "Node", node, cordon))

    def taint(self, at: int, node: str, _namespace: str) -> None:
        """Add a taint of a node, and its removal later."""
        taints = [{"key": "t", "effect": self.chance.of(("NoSchedule", "NoExecute"))}]
        self.changes.append(Patch(at, "Node", node, {"spec": {"taints": taints}}))
        later = at + 1 + self.chance.below(600_000)
        self.changes.append(Patch(later, "Node", node, {"spec": {"taints": []}}))

    def budget(self, at: int, _node: str, namespace: str) -> None:
        """Add a change of a disruption budget."""
        budget = {"spec": self.chance.of(({"minAvailable": 0}, {"minAvailable": 3}))}
        name = f"deploy-{1 + self.chance.below(9)}"
        self.changes.append(Patch(at, "PodDisruptionBudget", name, budget, namespace))

    def reweigh(self, at: int, _node: str, _namespace: str) -> None:
        """Add a change of the weight of a random queue."""
        weight = {"spec": {"weight": 1 + self.chance.below(5)}}
        queue = self.chance.of(tuple(QUEUES))
        self.changes.append(Patch(at, "Queue.scheduling.volcano.sh", queue, weight))

    def reprioritize(self, at: int, _node: str, _namespace: str) -> None:
        """Add the deletion of a PriorityClass, and its creation with another value."""
        name = self.chance.of(tuple(PRIORITIES))
        priority_class = _named("scheduling.k8s.io/v1", "PriorityClass", name)
        priority_class["value"] = self.chance.below(1000)
        self.changes.append(Delete(at, "PriorityClass", name))
        self.changes.append(Create(at + self.chance.below(20_000), priority_class))

    def restart(self, at: int, _node: str, _namespace: str) -> None:
        """Add a restart of the process."""
        self.changes.append(Restart(at, self.chance.of((0, 1_000, 60_000, 600_000))))

    def cut(self, at: int, _node: str, _namespace: str) -> None:
        """Add a change that cuts the watches of some kinds for a while."""
        kinds = tuple(self.chance.some(_CUT, 3)) or ("Pod",)
        length = self.chance.of((1, 500, 4_000, 30_000))
        self.changes.append(WatchCut(at, kinds, length, self.chance.one_in(2)))

    def jump(self, at: int, _node: str, _namespace: str) -> None:
        """Add a jump of the clock."""
        length = self.chance.of((1_000, 30_000, 90_000, 900_000))
        self.changes.append(ClockJump(at, length))

    def _any_name(self) -> tuple[str, str]:
        kind, prefix = self.chance.of(
            (("Deployment", "deploy"), ("StatefulSet", "sts"), ("Job", "job"), ("CronJob", "cron"))
        )
        return kind, f"{prefix}-{1 + self.chance.below(self.counts[prefix] + 1)}"

    def scale(self, at: int, _node: str, namespace: str) -> None:
        """Add a change that scales a workload, or suspends or resumes a CronJob."""
        kind, name = self._any_name()
        count = self.chance.below(16)
        spec: Json = {"parallelism": count} if kind == "Job" else {"replicas": count}
        if kind == "CronJob":
            spec = {"suspend": count < 4}
        self.changes.append(Patch(at, kind, name, {"spec": spec}, namespace))

    def fail(self, at: int, node: str, _namespace: str) -> None:
        """Add a change that makes a kubelet misbehave, in most cases only for a while."""
        how = self.chance.of(
            (
                "stopped",
                "stopped",
                "paused",
                "not-ready",
                "slow 45s",
                "flap 60s/120s",
                "memory-pressure",
            )
        )
        self.changes.append(_behaves(at, node, how))
        if self.chance.below(4):
            later = at + 1_000 + self.chance.below(900_000)
            self.changes.append(_behaves(later, node, "running"))

    def resize(self, at: int, node: str, _namespace: str) -> None:
        """Add a change of the capacity of a node."""
        size = {
            "cpu": str(self.chance.of((1, 2, 4, 16))),
            "pods": str(self.chance.of((4, 20, 110))),
        }
        status = {"status": {"capacity": size, "allocatable": size}}
        self.changes.append(Patch(at, "Node", node, status, is_status=True))

    def drain(self, at: int, node: str, _namespace: str) -> None:
        """Add the drain of a node and, with probability 1/2, the later end of the drain."""
        request = {"metadata": {"annotations": {DRAIN: "requested"}}}
        self.changes.append(Patch(at, "Node", node, request))
        if self.chance.one_in(2):
            back = {"metadata": {"annotations": {DRAIN: None}}, "spec": {"unschedulable": False}}
            self.changes.append(Patch(at + 1 + self.chance.below(600_000), "Node", node, back))

    def quota(self, at: int, _node: str, namespace: str) -> None:
        """Add the creation of a pod quota in `namespace`, and a change of this quota 1 ms later."""
        quota = _named("v1", "ResourceQuota", "quota", namespace)
        quota["spec"] = {"hard": {"pods": str(10 + self.chance.below(60))}}
        self.changes.append(Create(at, quota))
        patch = {"spec": {"hard": {"pods": str(self.chance.below(80))}}}
        self.changes.append(Patch(at + 1, "ResourceQuota", "quota", patch, namespace))

    def _calm_down(self) -> None:
        """Add changes that repair most nodes and suspend all CronJobs.

        In half of the scenarios, further changes delete all quotas. All these changes happen at the
        end of the phase `chaos`.
        """
        at = self.chaos_ms
        for node in self.nodes:
            how = "stopped" if self.chance.one_in(8) else "running"
            back = {
                "metadata": {"annotations": {KUBELET: how, DRAIN: None}},
                "spec": {"unschedulable": False, "taints": []},
            }
            self.changes.append(Patch(at, "Node", node, back))
        for number in range(1, self.counts["cron"] + 1):
            for namespace in NAMESPACES:
                suspend = {"spec": {"suspend": True}}
                self.changes.append(Patch(at, "CronJob", f"cron-{number}", suspend, namespace))
        if self.chance.one_in(2):
            for namespace in NAMESPACES:
                self.changes.append(Delete(at, "ResourceQuota", "quota", namespace))


# each kind of change, with its weight
_WEIGHTED: Final[tuple[tuple[Callable[[_Draw, int, str, str], None], int], ...]] = (
    (_Draw.create, 7),
    (_Draw.scale, 4),
    (_Draw.delete, 1),
    (_Draw.update, 1),
    (_Draw.end_pod, 4),
    (_Draw.fail, 2),
    (_Draw.replace_node, 1),
    (_Draw.resize, 1),
    (_Draw.cordon, 1),
    (_Draw.taint, 1),
    (_Draw.drain, 1),
    (_Draw.quota, 2),
    (_Draw.budget, 1),
    (_Draw.reweigh, 1),
    (_Draw.reprioritize, 1),
    (_Draw.restart, 1),
    (_Draw.cut, 4),
    (_Draw.jump, 1),
)
_CHANGES: Final = tuple(change for change, weight in _WEIGHTED for _ in range(weight))


def _behaves(at: int, node: str, how: str) -> Patch:
    return Patch(at, "Node", node, {"metadata": {"annotations": {KUBELET: how}}})


def _named(api_version: str, kind: str, name: str, namespace: str = "") -> Json:
    meta: Json = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}
