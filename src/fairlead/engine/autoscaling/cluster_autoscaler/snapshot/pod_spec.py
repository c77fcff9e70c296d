"""Decides whether two pods are equal for scheduling.

upstream: utils/utils.go: PodSpecSemanticallyEqual, utils/pod/pod.go
"""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.api.objects import Pod, PodSpec
from fairlead.api.well_known_label import HOSTNAME


def same_pods(a: Pod, b: Pod) -> bool:
    """Return whether `a` and `b` have equal labels and equal specs.

    Fields that differ within a workload are not compared: the node name, the host name and
    projected volumes (such as tokens). Environment variables are not compared either, because
    Fairlead's view of a pod has none.
    """
    if a.metadata.labels != b.metadata.labels:
        return False
    return a.spec == b.spec or _sanitized(a.spec) == _sanitized(b.spec)


def _sanitized(spec: PodSpec) -> PodSpec:
    volumes = tuple(volume for volume in spec.volumes if volume.projected is None)
    return replace(spec, node_name="", hostname="", volumes=volumes)


def names_host(spec: PodSpec) -> bool:
    """Return whether `spec` restricts the nodes by name or by the label kubernetes.io/hostname."""
    if HOSTNAME in spec.node_selector:
        return True
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = (
        None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
    )
    return required is not None and any(
        term.match_fields or any(one.key == HOSTNAME for one in term.match_expressions)
        for term in required.node_selector_terms
    )
