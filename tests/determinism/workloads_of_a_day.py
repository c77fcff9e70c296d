"""A program that prints all commands of a cluster in which workloads of all kinds change."""

from __future__ import annotations

from functools import partial

from fairlead.apiserver.kind import find_kind
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.worlds.simulation.world import SimulatedWorld

START = seconds(1_800_000_000)
ENDS = {"fairlead.dev/run-duration": "20s"}


def node(name, zone):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def template(name, image="i:1", *, annotations=None, **spec):
    return {
        "metadata": {"labels": {"app": name}, "annotations": annotations or {}},
        "spec": {"containers": [{"name": "c", "image": image}], **spec},
    }


def made(version, kind, name, **spec):
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def selecting(kind, name, **spec):
    selector = {"matchLabels": {"app": name}}
    return made("apps/v1", kind, name, selector=selector, template=template(name), **spec)


job = {"template": template("job", annotations=ENDS, restartPolicy="Never")}
HALF_A_CORE = {"type": "AverageValue", "averageValue": "500m"}
OBJECTS = [
    selecting("Deployment", "web", replicas=7),
    selecting("StatefulSet", "db", replicas=3),
    selecting("DaemonSet", "agent"),
    made("batch/v1", "Job", "pi", completions=5, parallelism=3, completionMode="Indexed", **job),
    made("batch/v1", "CronJob", "tick", schedule="* * * * *", jobTemplate={"spec": job}),
    made("v1", "Service", "web", selector={"app": "web"}, ports=[{"port": 80}]),
    made(
        "policy/v1",
        "PodDisruptionBudget",
        "web",
        selector={"matchLabels": {"app": "web"}},
        maxUnavailable="25%",
    ),
    selecting("Deployment", "api", replicas=2),
    made(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "api",
        scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"},
        maxReplicas=9,
        metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": HALF_A_CORE}}],
    ),
]
STOPPED = {"metadata": {"annotations": {"fairlead.dev/kubelet": "stopped"}}}
RUNNING = {"metadata": {"annotations": {"fairlead.dev/kubelet": None}}}
CHANGES = [
    (100, "deployment", "web", {"spec": {"template": template("web", "i:2")}}),
    (101, "deployment", "web", {"spec": {"replicas": 11}}),
    (102, "statefulset", "db", {"spec": {"replicas": 5, "template": template("db", "i:2")}}),
    (110, "daemonset", "agent", {"spec": {"template": template("agent", "i:2")}}),
    (120, "deployment", "api", {"metadata": {"annotations": {"fairlead.dev/load": "cpu=4"}}}),
    (400, "deployment", "api", {"metadata": {"annotations": {"fairlead.dev/load": "cpu=1"}}}),
    (150, "node", "n1", STOPPED),
    (700, "node", "n1", RUNNING),
]


def patch(store, now, *, kind, name, change):
    namespace = "" if kind == "node" else "default"
    store.patch(find_kind(kind), namespace, name, change, now)


def new_world(start, log):
    """Return an empty cluster at `start` whose statuses are written; commands go to `log`."""
    config = EngineConfig(start=start, workloads=WorkloadsConfig(serves_clients=True))
    engine = build_engine(config, SilentReporter())
    return SimulatedWorld(engine, start=start, command_log=log)


def eventful_world(log):
    """Return a cluster with all kinds of workloads, and scheduled changes of them."""
    world = new_world(START, log)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    world.load([namespace, *(node(f"n{place}", f"z{place % 2}") for place in range(6))])
    for one in OBJECTS:
        world.at(START + 1, lambda store, now, one=one: store.create(one, now))
    for at_s, kind, name, change in CHANGES:
        act = partial(patch, kind=kind, name=name, change=change)
        world.at(START + seconds(at_s), act)
    return world


def main():
    world = eventful_world(print)
    deployment = find_kind("deployment")
    world.at(
        START + seconds(800), lambda store, now: store.delete(deployment, "default", "web", now)
    )
    world.run(START + seconds(900))


if __name__ == "__main__":
    main()
