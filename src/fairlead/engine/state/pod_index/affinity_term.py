"""AffinityTerm: one compiled pod affinity or anti-affinity term.

upstream: pkg/scheduler/framework/types.go: newAffinityTerm, getNamespacesFromPodAffinityTerm
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final

import msgspec
from msgspec import Struct

from fairlead.api.objects import LabelSelector, PodAffinity, PodAffinityTerm, PodSpec
from fairlead.api.selector import selector_matches
from fairlead.engine.state.pod_class import PodClass, PodLocations

_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")


class TermKind(Enum):
    """The kind of an affinity term.

    The two required kinds filter nodes. All kinds except required anti-affinity affect scores.
    """

    REQUIRED_AFFINITY = "required affinity"
    REQUIRED_ANTI_AFFINITY = "required anti-affinity"
    PREFERRED = "preferred"


class AffinityTerm(Struct, frozen=True, eq=False):
    """One affinity or anti-affinity term of a pod, required or preferred.

    `weight` is 0 for required terms and negative for preferred anti-affinity. The term matches a
    pod if it matches both the namespace and the labels of the pod. The term matches a namespace
    that is in `namespaces` or that `namespace_selector` matches. The term matches labels that
    `selector` matches. A selector of None matches nothing.
    """

    kind: TermKind
    weight: int
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    selector: LabelSelector | None

    def matches(self, pods: PodClass, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term matches the pods of the class `pods`.

        `namespace_labels` are the labels of the namespace of these pods.
        """
        if pods.namespace not in self.namespaces and not selector_matches(
            self.namespace_selector, namespace_labels
        ):
            return False
        return selector_matches(self.selector, pods.labels)

    def key(self) -> bytes:
        """Return a key that is equal for equivalent terms."""
        return _ENCODER.encode(
            (
                self.kind.value,
                self.weight,
                self.topology_key,
                sorted(self.namespaces),
                self.namespace_selector,
                self.selector,
            )
        )


class PlacedTerm:
    """An affinity term of placed pods, with the nodes on which these pods are placed.

    PlacedTerms are compared by identity.
    """

    __slots__ = ("term", "where")

    def __init__(self, term: AffinityTerm) -> None:
        """Start without pods."""
        self.term = term
        self.where = PodLocations()


def has_pod_affinity(spec: PodSpec) -> bool:
    """Return whether `spec` has any pod affinity or anti-affinity."""
    affinity = spec.affinity
    return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)


def affinity_terms(spec: PodSpec, namespace: str) -> tuple[AffinityTerm, ...]:
    """Return the affinity terms of a pod with `spec` in `namespace`; required terms come first."""
    if spec.affinity is None:
        return ()
    with_others = spec.affinity.pod_affinity or PodAffinity()
    apart = spec.affinity.pod_anti_affinity or PodAffinity()
    return (
        *_required(with_others, TermKind.REQUIRED_AFFINITY, namespace),
        *_required(apart, TermKind.REQUIRED_ANTI_AFFINITY, namespace),
        *_preferred(with_others, 1, namespace),
        *_preferred(apart, -1, namespace),
    )


def _required(affinity: PodAffinity, kind: TermKind, namespace: str) -> Iterator[AffinityTerm]:
    for term in affinity.required_during_scheduling_ignored_during_execution:
        yield _compile(term, kind, 0, namespace)


def _preferred(affinity: PodAffinity, sign: int, namespace: str) -> Iterator[AffinityTerm]:
    for weighted in affinity.preferred_during_scheduling_ignored_during_execution:
        weight = sign * weighted.weight
        yield _compile(weighted.pod_affinity_term, TermKind.PREFERRED, weight, namespace)


def _compile(term: PodAffinityTerm, kind: TermKind, weight: int, namespace: str) -> AffinityTerm:
    """Compile `term`; if it has neither namespaces nor a namespaceSelector, use `namespace`."""
    named = term.namespaces
    if not named and term.namespace_selector is None:
        named = (namespace,)
    return AffinityTerm(
        kind, weight, term.topology_key, frozenset(named), term.namespace_selector,
        term.label_selector,
    )  # fmt: skip
