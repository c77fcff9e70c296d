"""PodClass: the pods that no namespace and label selector can distinguish."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.engine.state.pod_locations import PodLocations


class PodClass:
    """One distinct combination of namespace, labels and "is terminating", and where its pods are.

    Interned by `engine.state.pod_index`, so that a selector is evaluated once per class instead of
    once per pod. A `retired` class is no longer in the index and must be looked up again.
    """

    __slots__ = ("labels", "namespace", "retired", "terminating", "where")

    def __init__(self, namespace: str, labels: Mapping[str, str], *, terminating: bool) -> None:
        """Without pods."""
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.where = PodLocations()
        self.retired = False

    def __repr__(self) -> str:
        """Short, for failing tests."""
        return f"PodClass({self.namespace}, {dict(self.labels)}, {self.where.rows})"
