"""Option: a node group that could grow, the number of new nodes, and the pods that fit these nodes.

upstream: expander/expander.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.cloud_provider import NodeGroup
from fairlead.engine.autoscaling.cluster_autoscaler.template import Template
from fairlead.engine.state.pod_info import PodInfo


class Option(Struct, frozen=True):
    """An expansion option: adding `nodes` nodes to `group` makes room for `pods`.

    `similar` are the ids of the groups over which the new nodes are balanced.
    """

    group: NodeGroup
    nodes: int
    pods: tuple[PodInfo, ...]
    template: Template
    similar: tuple[str, ...] = ()


class Filter(Protocol):
    """A filter that keeps the best of several options."""

    def best_options(self, options: Sequence[Option]) -> list[Option]:
        """Return the best of `options`: several if equally good, [] if none is acceptable."""
        ...
