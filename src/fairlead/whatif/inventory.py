"""Inventory: which objects there are, so that names given by users can be checked beforehand.

`kind/name` is looked for in every namespace and refused where it is ambiguous, `kind/ns/name`
says which one. Nodes are named by name or by a label selector (`pool=small`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.api.selector import SelectorError, parse_selector, selector_matches
from fairlead.apiserver.kind import KINDS, NAMESPACE, NODE, Kind, find_kind
from fairlead.whatif.input_error import InputError, known_names
from fairlead.whatif.manifest import Manifest

_SELECTOR_SIGNS: Final = frozenset("=!<>(), ")


class Inventory:
    """The objects known when a change or an event is checked."""

    def __init__(self, manifests: Iterable[Manifest] = ()) -> None:
        """Start with `manifests`."""
        self._by_resource: dict[str, dict[tuple[str, str], Manifest]] = {}
        self._kinds: dict[str, Kind] = {}
        for manifest in manifests:
            self.add(manifest)

    def add(self, manifest: Manifest) -> None:
        """Take note of an object that is, or will be, there."""
        kind, ref = manifest.kind, manifest.ref
        self._kinds.setdefault(kind.resource, kind)
        self._by_resource.setdefault(kind.resource, {})[(ref.namespace, ref.name)] = manifest

    def remove(self, manifest: Manifest) -> None:
        """Take note that an object will be gone."""
        ref = manifest.ref
        del self._by_resource[manifest.kind.resource][(ref.namespace, ref.name)]

    def get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """The object of that identity, None when there is none."""
        return self._by_resource.get(kind.resource, {}).get((namespace, name))

    def of_kind(self, kind: Kind) -> list[Manifest]:
        """All objects of `kind`, in the order they were added."""
        return list(self._by_resource.get(kind.resource, {}).values())

    def find(self, source: str, text: str, namespace: str = "") -> Manifest:
        """The object that `text` (`kind/name` or `kind/namespace/name`) means.

        `namespace` limits the first form to one namespace. Raises InputError in the name of
        `source` for an unknown kind, no such object, or more than one.
        """
        kind, namespace, name = self._split(source, text, namespace)
        found = [
            manifest
            for (object_namespace, object_name), manifest in self._by_resource.get(
                kind.resource, {}
            ).items()
            if object_name == name and namespace in ("", object_namespace)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            where = ", ".join(sorted(manifest.ref.namespace for manifest in found))
            raise InputError(source, f"{text} is in several namespaces ({where}); say which")
        full_name = f"{namespace}/{name}" if namespace else name
        problem = f"there is no {kind.kind} {full_name}{self._similar(kind, name)}"
        raise InputError(source, problem)

    def find_deletable(self, source: str, text: str, namespace: str = "") -> Manifest:
        """As `find`, for an object whose deletion can be simulated."""
        found = self.find(source, text, namespace)
        if found.kind is NAMESPACE:
            problem = f"deleting the {found.title} with all it holds is not simulated yet"
            raise InputError(source, f"{problem}; delete its workloads")
        return found

    def nodes(self, source: str, text: str) -> list[str]:
        """The names of the nodes that `text`, a name or a selector, means; at least one.

        Raises InputError in the name of `source`.
        """
        nodes = self._by_resource.get(NODE.resource, {})
        if not _SELECTOR_SIGNS & set(text):
            if ("", text) not in nodes:
                raise InputError(source, f"there is no Node {text}{self._similar(NODE, text)}")
            return [text]
        try:
            selector = parse_selector(text)
        except SelectorError as cause:
            raise InputError(source, f"{text!r} is no node name or selector: {cause}") from None
        chosen = [
            manifest.ref.name
            for manifest in nodes.values()
            if selector_matches(selector, _labels(manifest))
        ]
        if not chosen:
            raise InputError(source, f"no node matches {text}")
        return chosen

    def _split(self, source: str, text: str, namespace: str) -> tuple[Kind, str, str]:
        parts = text.split("/")
        if len(parts) not in (2, 3) or not all(parts):
            raise InputError(source, f"{text!r} is not KIND/NAME or KIND/NAMESPACE/NAME")
        if len(parts) == 3:
            namespace = parts[1]
        kind = self._kind(source, parts[0])
        return kind, namespace if kind.namespaced else "", parts[-1]

    def _kind(self, source: str, name: str) -> Kind:
        if known := find_kind(name):
            return known
        for kind in self._kinds.values():
            if name.lower() in (kind.kind.lower(), kind.plural, kind.resource):
                return kind
        nearest = known_names(name, (kind.kind.lower() for kind in KINDS))
        raise InputError(source, f"unknown kind {name!r}; {nearest}")

    def _similar(self, kind: Kind, name: str) -> str:
        names = [other for _, other in self._by_resource.get(kind.resource, {})]
        if not names:
            return f" (the cluster has no {kind.kind} at all)"
        return f"; {known_names(name, names)}"


def _labels(manifest: Manifest) -> dict[str, str]:
    metadata = manifest.value.get("metadata", {})
    return dict(metadata.get("labels", {}))
