"""Scale-up with GPUs, and among groups whose DaemonSet pods differ."""

from __future__ import annotations

import pytest

from fairlead.conformance.autoscaler.case import decide_autoscaler

GPU = "nvidia.com/gpu"
GPU_LABEL = "fleet/accelerator"
CREATED = "2025-12-31T23:00:00Z"


def node(name, *, labels=None, allocatable=None, capacity=None, provider_id=""):
    plain = {"cpu": "4", "memory": "16Gi", "pods": "8"}
    return {
        "metadata": {"name": name, "labels": labels or {}, "creationTimestamp": CREATED},
        "spec": {"providerID": provider_id},
        "status": {
            "allocatable": {**plain, **(allocatable or {})},
            "capacity": {**plain, **(capacity or allocatable or {})},
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": CREATED},
            ],
        },
    }


def group(name, template, **more):
    return {"id": name, "min": 0, "max": 9, "template": template, **more}


def pod(name, requests, *, created=CREATED, init=None):
    spec = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    if init:
        one = {"name": "init", "image": "i", "resources": {"requests": init, "limits": init}}
        spec["initContainers"] = [one]
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "metadata": {"name": name, "namespace": "d", "creationTimestamp": created},
        "spec": {**spec, "schedulerName": "default-scheduler"},
        "status": {"phase": "Pending", "conditions": [unschedulable]},
    }


def scaled(**case):
    options = {"scale-down-enabled": False, **case.pop("options", {})}
    found = decide_autoscaler({"name": "c", "nodes": [], "options": options, **case})
    (status,) = found["loops"][0]["scaleUp"]
    return status


def increases(status):
    return {one["group"]: one["to"] for one in status.get("increases", ())}


def gpu_template(**labels):
    return node("t", labels={GPU_LABEL: "k80", **labels}, allocatable={GPU: "4"})
