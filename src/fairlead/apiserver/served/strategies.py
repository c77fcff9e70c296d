"""ServedStrategies: which kind gets what, when it is new and when it changes.

upstream: PrepareForCreate and PrepareForUpdate of pkg/registry/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.schema.decoding import empty
from fairlead.apiserver.schema.model import schema_of
from fairlead.apiserver.served.daemon_set import counted_template, first_template
from fairlead.apiserver.served.job import with_own_labels
from fairlead.apiserver.served.service_address import with_addresses, with_kept_addresses
from fairlead.apiserver.storage import Json, Storage

Create = Callable[[Json, Storage], Json]
Update = Callable[[Json, Json, Storage], Json]

_FINALIZER: Final = "kubernetes"


def _new_namespace(namespace: Json, _: Storage) -> Json:
    # PrepareForCreate in pkg/registry/core/namespace/strategy.go
    spec = {"finalizers": [_FINALIZER]}
    return {**namespace, "spec": spec, "status": {"phase": "Active"}}


_CREATE: Final[Mapping[str, Create]] = {
    "namespaces": _new_namespace,
    "services": with_addresses,
    "jobs.batch": with_own_labels,
    "daemonsets.apps": first_template,
}
_UPDATE: Final[Mapping[str, Update]] = {
    "services": with_kept_addresses,
    "daemonsets.apps": counted_template,
}
_STATUS_IS_SENT: Final = frozenset({"nodes", "namespaces", "pods"})


class ServedStrategies:
    """The strategies of all kinds."""

    def created(self, kind: Kind, obj: Json, storage: Storage) -> Json:
        """`obj`, which is about to be stored for the first time. Raises ApiError 422."""
        if kind.has_status and kind.resource not in _STATUS_IS_SENT:
            zero = _zero_status(kind)
            if zero is not None:
                obj = {**obj, "status": zero}
        rule = _CREATE.get(kind.resource)
        return rule(obj, storage) if rule else obj

    def updated(self, kind: Kind, old: Json, new: Json, storage: Storage) -> Json:
        """`new`, which is about to replace `old`. Raises ApiError 422."""
        rule = _UPDATE.get(kind.resource)
        return rule(old, new, storage) if rule else new


@lru_cache(maxsize=256)
def _zero_status(kind: Kind) -> Any:
    """What status is before anybody has written it; None where it is not there at all."""
    schema = None if kind.is_custom else schema_of(kind.api_version, kind.kind)
    return None if schema is None else empty(schema).get("status")
