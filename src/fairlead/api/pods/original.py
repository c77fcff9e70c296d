"""The original of a pod: the first pod in the chain of pods that replaced one another.

The annotation `fairlead.dev/replaces` of a replacement contains the name of the original. Reports
show this name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.api.objects import Pod
from fairlead.api.pods.replicas import Replicas

REPLACES: Final = "fairlead.dev/replaces"


def original_name(pod: Pod) -> str:
    """Return the name of the original of `pod`, or the pod's own name if it replaces no pod."""
    return pod.metadata.annotations.get(REPLACES, pod.metadata.name)


def original_key(pod: Pod) -> str:
    """Return `namespace/name` of the original of `pod`; see `original_name`."""
    return f"{pod.metadata.namespace}/{original_name(pod)}"


def original_keys(replicas: Replicas) -> Sequence[str]:
    """Return `namespace/name` of the original of each pod in `replicas`.

    All pods in `replicas` have the same annotations. Therefore, either all of them replace the same
    pod, or none of them replaces a pod.
    """
    first = replicas[0]
    if REPLACES not in first.metadata.annotations:
        return replicas.keys
    return [original_key(first)] * len(replicas)
