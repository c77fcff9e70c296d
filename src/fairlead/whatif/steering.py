"""Steering: annotations by which objects in a user's file tell simulated kubelets what to do.

On a Node it is how its kubelet misbehaves and what the system uses; on a Pod, or the template of
one, how long it runs, starts and stops, and what it uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.kubelet_behaviour import KUBELET, parse_kubelet_behaviour
from fairlead.api.objects import ObjectMeta, Pod
from fairlead.engine.kubelet.annotation import annotation_problems
from fairlead.engine.kubelet.usage import usage_problem

_OURS: Final = "fairlead.dev/"
FIELD: Final = f"metadata.annotations[{KUBELET}]"


def steering_problem(value: Any) -> str:
    """What is wrong with the annotation of a Node, or of a patch for one; "" where nothing is."""
    text = _below(_below(_below(value, "metadata"), "annotations"), KUBELET)
    if not isinstance(text, str):
        return ""  # there is none, or nonsense that is refused when the object is loaded
    try:
        parse_kubelet_behaviour(text)
    except ValueError as cause:
        return str(cause)
    return ""


def pod_steering_problem(value: Any) -> str:
    """What is wrong with them in a Pod, or in the template of a workload, and where; else ""."""
    template = _below(_below(value, "spec"), "template")
    for place, pod in (("", value), ("spec.template.", template)):
        for problem in _pod_problems(pod):
            return f"{place}{problem}"
    return ""


def _pod_problems(value: Any) -> Iterator[str]:
    annotations = _below(_below(value, "metadata"), "annotations")
    if not isinstance(annotations, dict):
        return
    ours = {
        key: text
        for key, text in annotations.items()
        if key.startswith(_OURS) and isinstance(text, str)
    }
    if ours:
        pod = Pod(metadata=ObjectMeta(name="", annotations=ours))
        yield from filter(None, (*annotation_problems(pod), usage_problem(pod)))


def _below(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None
