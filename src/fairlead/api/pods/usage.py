"""The resource usage of pods, given by the annotation `fairlead.dev/usage`.

    fairlead.dev/usage: cpu=250m,memory=900Mi,ephemeral-storage=2Gi,pids=40

On a Node, the annotation is the usage of system daemons. When a kubelet chooses pods to evict, a
pod without the annotation counts as using nothing. CPU usage causes no eviction, but
HorizontalPodAutoscalers act on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.objects import Node, Pod
from fairlead.api.quantity import milli_value, whole_value
from fairlead.api.text.text_cache import text_cache

USAGE: Final = "fairlead.dev/usage"
CPU: Final = "cpu"
RESOURCES: Final = (CPU, "memory", "ephemeral-storage", "pids")

Usage = Mapping[str, int]
NOTHING: Final[Usage] = {}


def usage_of(subject: Pod | Node) -> Usage:
    """Return the usage of each resource: cpu in millicores, other resources in whole units.

    Returns {} if the annotation `fairlead.dev/usage` is absent or cannot be parsed.
    """
    text = subject.metadata.annotations.get(USAGE)
    return NOTHING if text is None else _parsed(text)


def usage_problem(subject: Pod | Node) -> str:
    """Return the error in the annotation `fairlead.dev/usage`, "" if it is valid or absent."""
    text = subject.metadata.annotations.get(USAGE)
    if text is None:
        return ""
    try:
        parse_usage(text)
    except ValueError as problem:
        return f"metadata.annotations[{USAGE}]: {problem}"
    return ""


@text_cache(maxsize=1 << 14)
def _parsed(text: str) -> Usage:
    try:
        return parse_usage(text)
    except ValueError:
        return NOTHING


def parse_usage(text: str) -> Usage:
    """Parse `text`, the value of the annotation `fairlead.dev/usage`.

    Returns cpu in millicores and other resources in whole units. Raises ValueError if `text` is
    invalid.
    """
    usage = {}
    for part in text.split(","):
        name, _, amount = part.strip().partition("=")
        if name not in RESOURCES:
            raise ValueError(f"{part.strip()!r} is not of the form {'|'.join(RESOURCES)}=amount")
        usage[name] = milli_value(amount) if name == CPU else whole_value(amount)
        if usage[name] < 0:
            raise ValueError(f"{part.strip()!r} is negative")
    return usage
