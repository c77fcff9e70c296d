"""Objects whose defaults are not persisted: their next no-op update stores a new version.

Upstream sets defaults when it decodes the client's object. After that, PrepareForCreate may change
the object so that defaults are missing. For example, PrepareForCreate clears the status of a claim,
including the default phase. The object is written to etcd without these defaults. Whenever upstream
reads the object from etcd, it sets the defaults again, so clients see them. The first update writes
the defaults to etcd, even if the client changes nothing. The object then gets a new
resourceVersion, and watches send an event.

upstream: apiserver/pkg/storage/etcd3/store.go:GuaranteedUpdate compares what is stored;
pkg/apis/core/v1/defaults.go:SetDefaults_PersistentVolumeClaim and pkg/registry/core/
persistentvolumeclaim/strategy.go:PrepareForCreate; pkg/apis/batch/v1/defaults.go:SetDefaults_Job
and pkg/registry/batch/job/strategy.go:generateSelector
"""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.strategy import ResourceStrategy

_Key = tuple[str, str, str]


class UnpersistedDefaults:
    """Records which objects have defaults that are not persisted.

    A record contains the resourceVersion of the object. Only the store adds and removes records.
    """

    def __init__(self) -> None:
        self._versions: dict[_Key, str] = {}

    def note(self, kind: Kind, strategy: ResourceStrategy, sent: Json, stored: Json) -> None:
        """Record the new object if some defaults are missing in its stored form `stored`.

        `sent` is the object before PrepareForCreate, when it had all defaults.
        """
        lacks = strategy.has_unpersisted_defaults
        if lacks is not None and lacks(sent, stored):
            self._versions[_key(kind, stored)] = stored["metadata"]["resourceVersion"]

    def has(self, kind: Kind, obj: Json) -> bool:
        """Return whether `obj`, the newest version of an object, has unpersisted defaults."""
        version = self._versions.get(_key(kind, obj))
        return version is not None and version == str(obj["metadata"]["resourceVersion"])

    def forget(self, kind: Kind, obj: Json) -> None:
        """Remove the record of `obj`, because the store is about to write or delete the object."""
        self._versions.pop(_key(kind, obj), None)


def _key(kind: Kind, obj: Json) -> _Key:
    meta = obj["metadata"]
    return kind.resource, meta.get("namespace", ""), meta["name"]
