"""A Deployment in a dump, before or in the middle of a rollout."""

from __future__ import annotations

OLD, NEW = "aaaaaaaaa", "bbbbbbbbb"


def _spec(image):
    resources = {"requests": {"cpu": "1"}}
    return {"containers": [{"name": "c", "image": image, "resources": resources}]}


def _owned(kind, name):
    return [
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "name": name,
            "uid": f"u-{name}",
            "controller": True,
        }
    ]


def deployment(name, replicas, *, image="web:1", revision=1):
    """A Deployment of the namespace store."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name,
            "namespace": "store",
            "uid": f"u-{name}",
            "annotations": {"deployment.kubernetes.io/revision": str(revision)},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _spec(image)},
        },
        "status": {"replicas": replicas},
    }


def replica_set(deployment_name, digest, replicas, *, image="web:1", revision=1):
    """A ReplicaSet of the Deployment."""
    labels = {"app": deployment_name, "pod-template-hash": digest}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{deployment_name}-{digest}",
            "namespace": "store",
            "uid": f"u-{deployment_name}-{digest}",
            "labels": labels,
            "annotations": {
                "deployment.kubernetes.io/revision": str(revision),
                "deployment.kubernetes.io/desired-replicas": "8",
                "deployment.kubernetes.io/max-replicas": "10",
            },
            "ownerReferences": _owned("Deployment", deployment_name),
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _spec(image)},
        },
        "status": {"replicas": replicas},
    }


def pod(deployment_name, digest, number, node, *, image="web:1", ready=True):
    """A pod of the ReplicaSet."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{deployment_name}-{digest}-{number}",
            "namespace": "store",
            "uid": f"u-{deployment_name}-{digest}-{number}",
            "labels": {"app": deployment_name, "pod-template-hash": digest},
            "ownerReferences": _owned("ReplicaSet", f"{deployment_name}-{digest}"),
        },
        "spec": {**_spec(image), "nodeName": node},
        "status": {
            "phase": "Running" if ready else "Pending",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def at_rest():
    """Deployment web with 8 pods of one revision on n0, n1 and n2; Deployment api on n5."""
    return [
        deployment("web", 8),
        replica_set("web", OLD, 8),
        *(pod("web", OLD, number, f"n{number % 3}") for number in range(8)),
        *_api(),
    ]


def in_progress():
    """As `at_rest`, with 6 pods of the old revision, and 2 of 4 pods of the new one ready."""
    return [
        deployment("web", 8, image="web:2", revision=2),
        replica_set("web", OLD, 6),
        replica_set("web", NEW, 4, image="web:2", revision=2),
        *(pod("web", OLD, number, f"n{number % 3}") for number in range(6)),
        *(
            pod("web", NEW, number, f"n{number % 3}", image="web:2", ready=number < 2)
            for number in range(4)
        ),
        *_api(),
    ]


def _api():
    return [
        deployment("api", 2),
        replica_set("api", "ccccccccc", 2),
        *(pod("api", "ccccccccc", number, "n5") for number in range(2)),
    ]
