"""FirstForms: new objects that upstream's storage lacks a part of, until they are written again.

Defaults are set where an object is read, before the server makes a new one of it. What it makes
can call for defaults once more: the status of a claim that was taken away, a Job's labels where
only its template has some, and those the server's. Every reader sees them, as storage is read
with defaults too, but they are not in storage. So a write that changes nothing in what everybody
sees does change what is stored, once: it gets a version, and watches hear of it.

upstream: apiserver/pkg/storage/etcd3/store.go:GuaranteedUpdate compares what is stored;
pkg/apis/core/v1/defaults.go:SetDefaults_PersistentVolumeClaim and pkg/registry/core/
persistentvolumeclaim/strategy.go:PrepareForCreate; pkg/apis/batch/v1/defaults.go:SetDefaults_Job
and pkg/registry/batch/job/strategy.go:generateSelector
"""

from __future__ import annotations

from fairlead.api.json import Json
from fairlead.apiserver.kind import JOB, PERSISTENT_VOLUME_CLAIM, Kind

_Key = tuple[str, str, str]


class FirstForms:
    """Remembers the versions of such objects. Single writer: the store that creates them."""

    def __init__(self) -> None:
        """None so far."""
        self._versions: dict[_Key, str] = {}

    def note(self, kind: Kind, sent: Json, stored: Json) -> None:
        """`stored` is new; `sent` is what the client wanted, with its defaults."""
        if _is_short(kind, sent, stored):
            self._versions[_key(kind, stored)] = stored["metadata"]["resourceVersion"]

    def is_short(self, kind: Kind, obj: Json) -> bool:
        """Whether storage has less of `obj`, the newest version, than everybody sees."""
        version = self._versions.get(_key(kind, obj))
        return version is not None and version == str(obj["metadata"]["resourceVersion"])

    def forget(self, kind: Kind, obj: Json) -> None:
        """`obj` is about to be written again, or to go."""
        self._versions.pop(_key(kind, obj), None)


def _is_short(kind: Kind, sent: Json, stored: Json) -> bool:
    if kind is JOB:
        had, has = (obj["metadata"].get("labels") for obj in (sent, stored))
        return bool(has) and not had
    return kind is PERSISTENT_VOLUME_CLAIM


def _key(kind: Kind, obj: Json) -> _Key:
    meta = obj["metadata"]
    return kind.resource, meta.get("namespace", ""), meta["name"]
