"""What pods use of their nodes: the annotation `fairlead.dev/usage`, as a metrics pipeline has it.

    fairlead.dev/usage: cpu=250m,memory=900Mi,ephemeral-storage=2Gi,pids=40

On a Node it is what the system uses beside all pods. Who has none uses nothing. Usage that changes
is an annotation that changes. Nobody is short of cpu for it: that is for those who look.
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
    """Whole units by resource, thousandths of cpu.

    Nothing where the annotation is absent or cannot be read.
    """
    text = subject.metadata.annotations.get(USAGE)
    return NOTHING if text is None else _parsed(text)


def usage_problem(subject: Pod | Node) -> str:
    """What is wrong with the annotation, "" if nothing is."""
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
    """What `text` means. Raises ValueError."""
    usage = {}
    for part in text.split(","):
        name, _, amount = part.strip().partition("=")
        if name not in RESOURCES:
            raise ValueError(f"{part.strip()!r} is not of the form {'|'.join(RESOURCES)}=amount")
        usage[name] = milli_value(amount) if name == CPU else whole_value(amount)
        if usage[name] < 0:
            raise ValueError(f"{part.strip()!r} is negative")
    return usage
