"""PodSelector: which pods a rule counts, by namespace and labels.

Topology spread counts the non-terminating pods of one namespace that match one selector. Pod
affinity counts pods in several namespaces that match the selectors of all its terms.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.api.objects import LabelSelector
from fairlead.api.selector import selector_matches
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_index.anchor_index import Anchor, anchor_of

Namespaces = frozenset[str] | None
Demand = tuple[Namespaces, LabelSelector | None]


class PodSelector:
    """All `demands` must hold: (namespaces or None for all, label selector or None for nothing)."""

    __slots__ = ("anchor", "counts_terminating", "demands")

    def __init__(self, demands: Sequence[Demand], *, counts_terminating: bool) -> None:
        """Selects nothing if `demands` is empty."""
        self.demands = tuple(demands)
        self.counts_terminating = counts_terminating
        self.anchor: Anchor = anchor_of(demands[0][1]) if demands else None

    def matches(self, pods: PodClass) -> bool:
        """Whether `pods` count."""
        if not self.demands or (pods.terminating and not self.counts_terminating):
            return False
        return all(
            (namespaces is None or pods.namespace in namespaces)
            and selector_matches(selector, pods.labels)
            for namespaces, selector in self.demands
        )
