"""Objects whose defaults exist only in memory: the next no-op update stores a new version.

Upstream sets defaults when it decodes an object, before PrepareForCreate changes the object. This
change can make further defaults necessary. Examples are the status of a claim after the sent status
was cleared, and the labels of a Job, which default to the template's labels, after the server has
added labels to the template. Every reader sees these defaults, because upstream also sets defaults
when it reads from etcd, but etcd does not contain them. So an update without a visible change still
changes what is stored, once: the object gets a new resourceVersion and watches send an event.

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
    """The versions of objects with unpersisted defaults; only the store writes them."""

    def __init__(self) -> None:
        """Starts without versions."""
        self._versions: dict[_Key, str] = {}

    def note(self, kind: Kind, strategy: ResourceStrategy, sent: Json, stored: Json) -> None:
        """Records the new object `stored` if it has unpersisted defaults.

        `sent` is the client's object with its defaults.
        """
        lacks = strategy.has_unpersisted_defaults
        if lacks is not None and lacks(sent, stored):
            self._versions[_key(kind, stored)] = stored["metadata"]["resourceVersion"]

    def has(self, kind: Kind, obj: Json) -> bool:
        """Return whether `obj`, the newest version, has defaults that are not stored."""
        version = self._versions.get(_key(kind, obj))
        return version is not None and version == str(obj["metadata"]["resourceVersion"])

    def forget(self, kind: Kind, obj: Json) -> None:
        """Removes the record of `obj`, which is about to be written or removed."""
        self._versions.pop(_key(kind, obj), None)


def _key(kind: Kind, obj: Json) -> _Key:
    meta = obj["metadata"]
    return kind.resource, meta.get("namespace", ""), meta["name"]
