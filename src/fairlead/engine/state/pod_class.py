"""PodClass: the pods that no namespace and label selector can tell apart."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.engine.state.pod_locations import PodLocations


class PodClass:
    """One distinct namespace, label set and "is terminating", and where such pods are.

    Interned by `engine.state.pod_index`, so that a selector is tried once per object instead of
    once per pod. A retired one has been forgotten there and must be asked for anew.
    """

    __slots__ = ("labels", "namespace", "retired", "terminating", "where")

    def __init__(self, namespace: str, labels: Mapping[str, str], *, terminating: bool) -> None:
        """Nowhere yet."""
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.where = PodLocations()
        self.retired = False

    def __repr__(self) -> str:
        """Short, for failing tests."""
        return f"PodClass({self.namespace}, {dict(self.labels)}, {self.where.rows})"
