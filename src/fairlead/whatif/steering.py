"""Steering: the annotation by which a Node in a user's file tells its kubelet to misbehave."""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.kubelet_behaviour import KUBELET, parse_kubelet_behaviour

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


def _below(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None
