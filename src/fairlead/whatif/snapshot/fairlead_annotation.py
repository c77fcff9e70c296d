"""Validates `fairlead.dev/` annotations, which control simulated kubelets.

The annotations of a Node set the misbehaviour of its kubelet and the resources that the system
uses. The annotations of a Pod or pod template set its times to start, run and stop, and its
resource usage. An annotation of a workload sets its load.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.kubelet_behaviour import KUBELET, parse_kubelet_behaviour
from fairlead.api.objects import ObjectMeta, Pod
from fairlead.api.pods.usage import usage_problem
from fairlead.engine.kubelet.annotation import annotation_problems
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import LOAD, parse_load

OURS: Final = "fairlead.dev/"
FIELD: Final = f"metadata.annotations[{KUBELET}]"


def node_annotation_problem(value: Any) -> str:
    """Return the problem with the kubelet annotation in a Node or patch; "" if it is valid."""
    text = _below(_below(_below(value, "metadata"), "annotations"), KUBELET)
    if not isinstance(text, str):
        return ""  # missing, or malformed; a malformed value is reported when the object is loaded
    try:
        parse_kubelet_behaviour(text)
    except ValueError as cause:
        return str(cause)
    return ""


def pod_annotation_problem(value: Any) -> str:
    """Return the first problem with annotations of a Pod or workload, with its path; else ""."""
    template = _below(_below(value, "spec"), "template")
    load = _below(_below(_below(value, "metadata"), "annotations"), LOAD)
    if isinstance(load, str):
        try:
            parse_load(load)
        except ValueError as cause:
            return f"metadata.annotations[{LOAD}]: {cause}"
    for path, pod in (("", value), ("spec.template.", template)):
        for problem in _pod_problems(pod):
            return f"{path}{problem}"
    return ""


def _pod_problems(value: Any) -> Iterator[str]:
    annotations = _below(_below(value, "metadata"), "annotations")
    if not isinstance(annotations, dict):
        return
    ours = {
        key: text
        for key, text in annotations.items()
        if key.startswith(OURS) and isinstance(text, str)
    }
    if ours:
        pod = Pod(metadata=ObjectMeta(name="", annotations=ours))
        yield from filter(None, (*annotation_problems(pod), usage_problem(pod)))


def _below(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None
