"""PodSelector: selects the pods that a rule counts, by namespace and labels.

Topology spread counts the non-terminating pods of one namespace that match one selector. Pod
affinity counts the pods that match all given terms. Each term has namespaces and a label selector.

AnchorIndex finds the selectors that may match a set of labels. Most selectors require a certain
label with a certain value; this pair is the selector's anchor. A selector with an anchor is only
evaluated for label sets that contain the anchor. So most selectors are skipped without evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from fairlead.api.objects import LabelSelector
from fairlead.api.selector import selector_matches
from fairlead.engine.state.pod_class import PodClass

Namespaces = frozenset[str] | None
Demand = tuple[Namespaces, LabelSelector | None]
Entry = TypeVar("Entry")
Anchor = tuple[str, str] | None


class PodSelector:
    """Selects the pods that meet all `demands`.

    A demand is a set of namespaces (None for all namespaces) and a label selector (None matches no
    pods).
    """

    __slots__ = ("anchor", "counts_terminating", "demands")

    def __init__(self, demands: Sequence[Demand], *, counts_terminating: bool) -> None:
        """Select pods that meet all `demands`; if `demands` is empty, select no pods.

        Terminating pods are selected only if `counts_terminating` is set.
        """
        self.demands = tuple(demands)
        self.counts_terminating = counts_terminating
        self.anchor: Anchor = anchor_of(demands[0][1]) if demands else None

    def matches(self, pods: PodClass) -> bool:
        """Return whether the selector selects `pods`."""
        if not self.demands or (pods.terminating and not self.counts_terminating):
            return False
        return all(
            (namespaces is None or pods.namespace in namespaces)
            and selector_matches(selector, pods.labels)
            for namespaces, selector in self.demands
        )


def anchor_of(selector: LabelSelector | None) -> Anchor:
    """Return a label that every matching object must have; None if no such label is known."""
    if selector is None:
        return None
    for label in selector.match_labels.items():
        return label
    for one in selector.match_expressions:
        if one.operator == "In" and len(one.values) == 1:
            return one.key, one.values[0]
    return None


class AnchorIndex(Generic[Entry]):
    """Entries, such as selectors, stored by a label that they require (see `anchor_of`)."""

    def __init__(self) -> None:
        """Start empty."""
        self._by_anchor: dict[Anchor, dict[Entry, None]] = {}

    def add(self, anchor: Anchor, entry: Entry) -> None:
        """Store `entry`; `remove` undoes this."""
        self._by_anchor.setdefault(anchor, {})[entry] = None

    def remove(self, anchor: Anchor, entry: Entry) -> None:
        """Remove `entry`."""
        filed = self._by_anchor[anchor]
        del filed[entry]
        if not filed:
            del self._by_anchor[anchor]

    def candidates(self, labels: Mapping[str, str]) -> list[Entry]:
        """Return the entries that may match `labels`.

        Entries without an anchor come first. After them come, for each label in `labels`, the
        entries whose anchor is this label.
        """
        found = list(self._by_anchor.get(None, ()))
        for label in labels.items():
            found.extend(self._by_anchor.get(label, ()))
        return found
