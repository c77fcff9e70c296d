"""ServedKinds: the built-in and custom kinds that a server serves, in discovery order.

Groups are in the order of `kind_table.GROUP_VERSIONS`. After them come the groups of custom
resources, and then metrics.k8s.io. The versions of a group are sorted from most to least stable.

The groups of custom resources have equal priorities. These groups are sorted by the names of their
APIServices, which begin with the version: v1.example.com comes before v1beta1.a.com. If several
groups have a resource of the same name, kubectl reads the resource of the first group.

upstream: kube-aggregator/pkg/controllers/autoregister,
kube-aggregator/pkg/apis/apiregistration/v1/helper/helpers.go: SortedByGroupAndVersion and
pkg/controlplane/apiserver/aggregator.go:DefaultGenericAPIServicePriorities
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from fairlead.apiserver.kind import (
    KINDS,
    NODE_METRICS,
    POD_METRICS,
    POSTED_KINDS,
    Kind,
    kind_of,
    version_order,
)
from fairlead.apiserver.kind_table import GROUP_VERSIONS

# This group comes after custom groups, because metrics servers register with the lowest priority.
MEASURED_GROUP: Final = "metrics.k8s.io"
_ALL: Final = tuple(kind for kind in (*KINDS, *POSTED_KINDS) if not kind.is_custom)
# The kinds that are served by default.
BUILT_IN: Final = tuple(kind for kind in _ALL if not kind.feature_gate)

# The kinds of a server on which all feature gates are enabled and which also serves metrics.
WITH_METRICS: Final = (*_ALL, NODE_METRICS, POD_METRICS)

_GROUPS: Final = tuple(
    dict.fromkeys(line.split()[0].rpartition("/")[0] for line in GROUP_VERSIONS.split("\n")[1:-1])
)
_RANK: Final = {group: rank for rank, group in enumerate(_GROUPS)}


def built_in_kinds(gates: Collection[str]) -> tuple[Kind, ...]:
    """Return the built-in kinds of a server whose enabled feature gates are `gates`."""
    return tuple(kind for kind in _ALL if not kind.feature_gate or kind.feature_gate in gates)


class ServedKinds:
    """The served kinds by path and by type; `revision` is incremented at every change."""

    def __init__(self, kinds: Iterable[Kind] = BUILT_IN) -> None:
        """`kinds` are the built-in kinds."""
        self.revision = 0
        self._built_in = tuple(kinds)
        self._own = frozenset(kind.resource for kind in self._built_in)
        self._defined: dict[str, tuple[Kind, ...]] = {}
        self._index()

    def is_own(self, resource: str) -> bool:
        """Return whether the resource is built in rather than defined by a user."""
        return resource in self._own

    def define(self, name: str, kinds: Iterable[Kind]) -> None:
        """Serve `kinds`, the versions of a custom resource whose definition is called `name`."""
        self._defined[name] = tuple(kinds)
        self._index()

    def withdraw(self, name: str) -> None:
        """Stop serving the custom resource whose definition is called `name`."""
        if self._defined.pop(name, None) is not None:
            self._index()

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind at a path; None if the server serves no kind there."""
        return self._by_path.get((group, version, plural))

    def of_type(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind called `kind` in `api_version`; None if the server does not serve it."""
        return self._by_type.get((api_version, kind))

    def kind_of(self, obj: Mapping[str, Any]) -> Kind:
        """Return the kind of a JSON object.

        If the kind is not served, it is guessed from the object.
        """
        known = self._by_type.get((obj.get("apiVersion", ""), obj.get("kind", "")))
        return known or kind_of(obj)

    def groups(self) -> tuple[str, ...]:
        """Return the groups in order of preference, the core group ("") first."""
        return tuple(self._groups)

    def versions(self, group: str) -> tuple[str, ...]:
        """Return the versions of a group, the preferred version first; () for an unserved group."""
        return tuple(self._groups.get(group, ()))

    def kinds(self, group: str, version: str) -> tuple[Kind, ...]:
        """Return the kinds in a version of a group; () if the version is not served."""
        return self._groups.get(group, {}).get(version, ())

    def is_built_in(self, group: str) -> bool:
        """Return whether a group has built-in kinds."""
        versions = self._groups.get(group, {}).values()
        return any(not kind.is_custom for kinds in versions for kind in kinds)

    def all_kinds(self) -> tuple[Kind, ...]:
        """Return every kind in every version, in discovery order."""
        versions = (kinds for group in self._groups.values() for kinds in group.values())
        return tuple(kind for kinds in versions for kind in kinds)

    def _index(self) -> None:
        """Rebuild all indexes after definitions have changed."""
        self.revision += 1
        kinds = [
            *self._built_in,
            *(kind for name in sorted(self._defined) for kind in self._defined[name]),
        ]
        # Built-in kinds come last, so that they replace kinds of definitions with the same name.
        self._by_path = {(kind.group, kind.version, kind.plural): kind for kind in reversed(kinds)}
        self._by_type = {(kind.api_version, kind.kind): kind for kind in reversed(kinds)}
        self._groups: dict[str, dict[str, tuple[Kind, ...]]] = {}
        first: dict[str, str] = {}  # the name of the first APIService of each custom group
        for kind in kinds:
            if kind.group not in _RANK:
                name = f"{kind.version}.{kind.group}"
                first[kind.group] = min(first.get(kind.group, name), name)
        for kind in sorted(kinds, key=lambda kind: _place(kind, first.get(kind.group, ""))):
            versions = self._groups.setdefault(kind.group, {})
            versions[kind.version] = (*versions.get(kind.version, ()), kind)


def _place(kind: Kind, service: str) -> tuple[int, str, tuple[int, int, int, str], str]:
    """Return the sort key of `kind`.

    `service` is the name of the first APIService of the kind's group, if the group is custom.
    """
    rank = _RANK.get(kind.group, len(_GROUPS))
    if kind.group == MEASURED_GROUP:
        rank += 1
    return rank, service, version_order(kind.version), kind.plural
