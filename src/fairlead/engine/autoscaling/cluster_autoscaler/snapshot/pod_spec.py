"""Compares pods: whether two pods are equal for scheduling.

upstream: utils/utils.go: PodSpecSemanticallyEqual, utils/pod/pod.go
"""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.api.objects import Pod, PodSpec


def same_pods(a: Pod, b: Pod) -> bool:
    """Return True if labels and specs are equal, apart from what varies within a workload.

    Node name, host name and projected volumes (such as tokens) vary. Environment variables are not
    part of the view of a pod.
    """
    if a.metadata.labels != b.metadata.labels:
        return False
    return a.spec == b.spec or _sanitized(a.spec) == _sanitized(b.spec)


def _sanitized(spec: PodSpec) -> PodSpec:
    volumes = tuple(volume for volume in spec.volumes if volume.projected is None)
    return replace(spec, node_name="", hostname="", volumes=volumes)
