"""Requirements on the labels of a node, one per label, and their compatibility.

A set of requirements never changes. `with_added` returns a new set. `A.compatible(B)` returns
whether a node that A describes can satisfy the requirements B. If B mentions a label that A lacks,
the result is False. There are two exceptions: the label is in `allow_undefined` (callers pass the
well-known labels), or a missing label satisfies the requirement (NotIn, DoesNotExist). Methods that
explain a conflict return upstream's text, or None if there is no conflict.

upstream: pkg/scheduling/requirements.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from fairlead.api.objects import NodeSelectorTerm, Pod
from fairlead.api.well_known_label import HOSTNAME
from fairlead.engine.autoscaling.karpenter.labels import normalized_label
from fairlead.engine.autoscaling.karpenter.scheduling.requirement import (
    LabelRequirement,
    of_selector,
    requirement,
)

_NOTHING: Final[frozenset[str]] = frozenset()


class Requirements:
    """A set of requirements, at most one per label. Sets with equal requirements are equal."""

    __slots__ = ("_by_key", "_hash")

    def __init__(self, by_key: Mapping[str, LabelRequirement] | None = None) -> None:
        """Use `by_key` without copying it; it must not change afterwards."""
        self._by_key: Mapping[str, LabelRequirement] = by_key or {}
        self._hash: int | None = None

    def __iter__(self) -> Iterator[LabelRequirement]:
        """Return the requirements, in order of insertion."""
        return iter(self._by_key.values())

    def __contains__(self, key: str) -> bool:
        """Return whether there is a requirement on the label `key`."""
        return key in self._by_key

    def __len__(self) -> int:
        """Return the number of labels that have a requirement."""
        return len(self._by_key)

    def __eq__(self, other: object) -> bool:
        """Return whether `other` contains the same requirements."""
        return isinstance(other, Requirements) and self._by_key == other._by_key

    def __hash__(self) -> int:
        """Return a hash of the contents, computed once."""
        if self._hash is None:
            self._hash = frozenset(self._by_key.values()).__hash__()
        return self._hash

    @property
    def labels(self) -> Iterable[str]:
        """The labels that have a requirement."""
        return self._by_key.keys()

    def get(self, key: str) -> LabelRequirement:
        """Return the requirement on `key`; if there is none, one that allows any value."""
        found = self._by_key.get(key)
        return LabelRequirement(key, complement=True) if found is None else found

    def find(self, key: str) -> LabelRequirement | None:
        """Return the requirement on `key`; None if there is none."""
        return self._by_key.get(key)

    def with_added(self, more: Iterable[LabelRequirement]) -> Requirements:
        """Return these requirements and `more` together.

        Requirements on the same label are intersected.
        """
        by_key = dict(self._by_key)
        for one in more:
            existing = by_key.get(one.key)
            by_key[one.key] = one if existing is None else one.intersection(existing)
        return Requirements(by_key)

    def replaced(self, requirement: LabelRequirement) -> Requirements:
        """Return these requirements; `requirement` replaces the one with the same key."""
        return Requirements({**self._by_key, requirement.key: requirement})

    def without(self, key: str) -> Requirements:
        """Return these requirements without the requirement on `key`."""
        if key not in self._by_key:
            return self
        return Requirements({k: one for k, one in self._by_key.items() if k != key})

    def with_min_values(self) -> list[LabelRequirement]:
        """Return the requirements that have minValues."""
        return [one for one in self._by_key.values() if one.min_values is not None]

    def conflict(self, other: Requirements) -> str | None:
        """Return upstream's text if no node can satisfy both sets of requirements, else None.

        Only labels that both sets mention are compared. Two requirements on a label do not
        conflict if a node without the label satisfies both.
        """
        # upstream: requirements.go:Intersects
        mine, theirs = self._by_key, other._by_key
        keys = mine.keys() & theirs.keys()
        bad = [key for key in keys if not _agree(mine[key], theirs[key])]
        if not bad:
            return None
        return "; ".join(f"key {key}, {theirs[key]} not in {mine[key]}" for key in sorted(bad))

    def intersects(self, other: Requirements) -> bool:
        """Return whether a node can satisfy both sets, that is, `conflict` returns None."""
        mine, theirs = self._by_key, other._by_key
        if len(mine) > len(theirs):
            mine, theirs = theirs, mine
        for key, one in mine.items():
            incoming = theirs.get(key)
            if incoming is not None and not _agree(one, incoming):
                return False
        return True

    def incompatibility(
        self, required: Requirements, allow_undefined: Collection[str] = _NOTHING
    ) -> str | None:
        """Return upstream's text if nodes with these requirements cannot satisfy `required`.

        Returns None if they can. A label that only `required` mentions is accepted if it is in
        `allow_undefined`, or if a node without the label satisfies `required`.
        """
        # upstream: requirements.go:Compatible
        for key in sorted(self._undefined(required, allow_undefined)):
            hint = self._typo_hint(key, allow_undefined)
            return f'label "{key}" does not have known values{hint}'
        return self.conflict(required)

    def compatible(
        self, required: Requirements, allow_undefined: Collection[str] = _NOTHING
    ) -> bool:
        """Return whether a node that meets these requirements can also meet `required`."""
        mine = self._by_key
        for key, one in required._by_key.items():
            existing = mine.get(key)
            if existing is None:
                if key not in allow_undefined and not one.allows_missing_label:
                    return False
            elif not _agree(existing, one):
                return False
        return True

    def _undefined(self, required: Requirements, allowed: Collection[str]) -> list[str]:
        return [
            key
            for key, one in required._by_key.items()
            if key not in self._by_key and key not in allowed and not one.allows_missing_label
        ]

    def _typo_hint(self, key: str, allowed: Collection[str]) -> str:
        # upstream: requirements.go:labelHint, over maps in random order
        suffix = key.partition("/")[2] if "/" in key else key
        for known in (*sorted(allowed), *sorted(self._by_key)):
            if key in known or known.endswith(suffix):
                return f' (typo of "{known}"?)'
        return ""

    def __str__(self) -> str:
        """Return the texts of all requirements except the one on the hostname, sorted."""
        return ", ".join(sorted(str(one) for one in self if one.key != HOSTNAME))


def label_requirements(labels: Mapping[str, str]) -> Requirements:
    """Return `labels` as requirements, each of which allows only the value of its label."""
    found: dict[str, LabelRequirement] = {}
    for name, value in labels.items():
        key = normalized_label(name)
        one = LabelRequirement(key, values=frozenset((value,)))
        existing = found.get(key)
        found[key] = one if existing is None else one.intersection(existing)
    return Requirements(found)


def combined(requirements: Iterable[LabelRequirement]) -> Requirements:
    """Return the intersection of `requirements`, label by label."""
    return Requirements().with_added(requirements)


def term_requirements(term: NodeSelectorTerm) -> Requirements:
    """Return the requirements of the matchExpressions of a node selector term."""
    return combined(of_selector(one) for one in term.match_expressions)


def pod_requirements(pod: Pod, *, preferred: bool) -> Requirements:
    """Return the requirements of nodeSelector and of the first required node affinity term.

    If `preferred` is set, the preferred term with the highest weight is added. If the pod cannot be
    placed, relaxation removes the first required term or the added preferred term from the pod.
    """
    # upstream: requirements.go:newPodRequirements
    selector = pod.spec.node_selector
    found = combined(requirement(key, "In", (value,)) for key, value in selector.items())
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return found
    preferences = affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
    if preferred and preferences:
        heaviest = max(preferences, key=lambda one: one.weight)
        found = found.with_added(term_requirements(heaviest.preference))
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if required is not None and required.node_selector_terms:
        found = found.with_added(term_requirements(required.node_selector_terms[0]))
    return found


def has_preferred_node_affinity(pod: Pod) -> bool:
    """Return whether the pod has preferred node affinity."""
    affinity = pod.spec.affinity
    return (
        affinity is not None
        and affinity.node_affinity is not None
        and bool(affinity.node_affinity.preferred_during_scheduling_ignored_during_execution)
    )


def _agree(existing: LabelRequirement, incoming: LabelRequirement) -> bool:
    return existing.has_intersection(incoming) or (
        incoming.allows_missing_label and existing.allows_missing_label
    )
