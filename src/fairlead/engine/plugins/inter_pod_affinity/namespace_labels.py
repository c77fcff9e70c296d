"""NamespaceLabels: the labels that namespace selectors match.

A namespace without an object has no labels. Selectors of placed pods may still match it (for
example DoesNotExist); selectors of the incoming pod pick from existing objects only
(interpodaffinity/plugin.go: GetNamespaceLabelsSnapshot, mergeAffinityTermNamespacesIfNotEmpty).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.objects import LabelSelector, Namespace
from fairlead.api.selector import selector_matches
from fairlead.engine.state.pod_index.affinity_term import AffinityTerm
from fairlead.engine.state.pod_index.pod_selector import Namespaces
from fairlead.engine.state.related_objects import RelatedObjects

_NO_LABELS: Final[Mapping[str, str]] = {}


class NamespaceLabels:
    """`version` grows when the labels of a namespace change; call `refresh` first."""

    def __init__(self, related: RelatedObjects) -> None:
        """Reads the Namespace objects in `related`."""
        self._related = related
        self._read = -1
        self._labels: dict[str, Mapping[str, str]] = {}
        self.version = 0

    def refresh(self) -> int:
        """Read the objects again if any has changed; return `version`."""
        if self._read != self._related.version:
            self._read = self._related.version
            found: dict[str, Mapping[str, str]] = {
                one.key: one.metadata.labels for one in self._related.all_of(Namespace)
            }
            if found != self._labels:
                self._labels = found
                self.version += 1
        return self.version

    def of(self, namespace: str) -> Mapping[str, str]:
        """The labels of `namespace`."""
        return self._labels.get(namespace, _NO_LABELS)

    def meant_by(self, term: AffinityTerm) -> Namespaces:
        """The namespaces covered by a term of the incoming pod, None for all."""
        selector = term.namespace_selector
        if selector is None:
            return term.namespaces
        if selector == LabelSelector():
            return None
        matching = (n for n, labels in self._labels.items() if selector_matches(selector, labels))
        return term.namespaces.union(matching)
