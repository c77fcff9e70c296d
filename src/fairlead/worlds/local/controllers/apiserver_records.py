"""What an API server writes down of itself in `kube-system`.

    ConfigMap extension-apiserver-authentication
        whose certificates it accepts: other servers, kube-scheduler and kube-controller-manager
        read there who their clients may be
    ConfigMap kube-apiserver-legacy-service-account-token-tracking
        since when uses of old tokens are noted
    Lease apiserver-HASH
        that it is there; HASH is its host's

They are there from the beginning and come back. There is no front proxy, so nothing is said of
whom one would let in. Upstream's Lease is renewed every ten seconds, which nobody waits for; this
one is renewed when the server starts, so that a cluster at rest stays at rest.

upstream: pkg/controlplane/controller/clusterauthenticationtrust, legacytokentracking;
pkg/controlplane/apiserver/server.go:labelAPIServerHeartbeatFunc; apiserver/pkg/server/config.go
"""

from __future__ import annotations

from base64 import b32encode
from contextlib import suppress
from hashlib import sha256
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_micro_time, format_timestamp
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.endpoints.bootstrap import MANAGER, create_as_apiserver
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import LEASE, NAMESPACE, Kind, kind_of
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.instant import Instant

CONFIG_MAP: Final = kind_of({"apiVersion": "v1", "kind": "ConfigMap"})
PLACE: Final = "kube-system"
AUTHENTICATION: Final = "extension-apiserver-authentication"
TRACKING: Final = "kube-apiserver-legacy-service-account-token-tracking"
CLIENT_AUTHORITY: Final = "client-ca-file"
PROGRAM: Final = "kube-apiserver"
DURATION_S: Final = 3_600
_DATE: Final = len("2026-01-01")
_HASH: Final = 16


def server_name(host: str) -> str:
    """The name by which an API server on `host` is known."""
    parts = (text.encode() for text in (host, PROGRAM))
    digest = sha256(b"".join(len(part).to_bytes(2, "big") + part for part in parts)).digest()
    return f"apiserver-{b32encode(digest[:_HASH]).decode().rstrip('=').lower()}"


class OwnRecords:
    """An Attendant.

    `address` is the host and port that clients are told, `host` the machine, `authority` the PEM
    text of the CA whose certificates are accepted, "" for none.
    """

    def __init__(self, host: str, address: str, authority: str = "") -> None:
        """Nothing is there before the first change."""
        self._host = host
        self._address = address
        self._authority = authority
        self._name = server_name(host)
        self._names = (AUTHENTICATION, TRACKING, self._name)
        self._is_renewed = False

    def attend(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See Attendant."""
        meta = change.object["metadata"]
        is_gone = change.type is ChangeType.DELETED
        has_begun = change.kind is NAMESPACE and meta["name"] == PLACE and not is_gone
        is_ours = meta["name"] in self._names and meta.get("namespace") == PLACE
        if has_begun or is_ours:
            self._see_to(store, now)

    def _see_to(self, store: Store, now: Instant) -> None:
        if self._authority:
            self._see_to_authority(store, now)
        if store.find(CONFIG_MAP, PLACE, TRACKING) is None:
            since = format_timestamp(now)[:_DATE]
            _create(store, CONFIG_MAP, {"name": TRACKING}, {"data": {"since": since}}, now)
        lease = store.find(LEASE, PLACE, self._name)
        if lease is None:
            self._is_renewed = True
            _create(store, LEASE, self._lease_meta(), {"spec": self._lease_spec(store, now)}, now)
        elif not self._is_renewed:
            self._is_renewed = True
            spec = {**lease.get("spec", {}), "renewTime": format_micro_time(now)}
            note = track(LEASE, MANAGER, "Update", "", now)
            store.update(LEASE, lease, {**lease, "spec": spec}, write=Write(track=note))

    def _see_to_authority(self, store: Store, now: Instant) -> None:
        """Add ours to what is there: another server may have written that."""
        found = store.find(CONFIG_MAP, PLACE, AUTHENTICATION)
        if found is None:
            data = {CLIENT_AUTHORITY: self._authority}
            _create(store, CONFIG_MAP, {"name": AUTHENTICATION}, {"data": data}, now)
            return
        known = (found.get("data") or {}).get(CLIENT_AUTHORITY, "")
        if self._authority.strip() not in known:
            data = {**(found.get("data") or {}), CLIENT_AUTHORITY: known + self._authority}
            note = track(CONFIG_MAP, MANAGER, "Update", "", now)
            store.update(CONFIG_MAP, found, {**found, "data": data}, write=Write(track=note))

    def _lease_meta(self) -> Json:
        return {
            "name": self._name,
            "labels": {
                "apiserver.kubernetes.io/identity": PROGRAM,
                "kubernetes.io/hostname": self._host,
            },
            "annotations": {"kubernetes.io/peer-advertise-address": self._address},
        }

    def _lease_spec(self, store: Store, now: Instant) -> Json:
        return {
            "holderIdentity": f"{self._name}_{store.ids.new_uid(LEASE, PLACE, self._name)}",
            "leaseDurationSeconds": DURATION_S,
            "renewTime": format_micro_time(now),
        }


def _create(store: Store, kind: Kind, meta: Json, content: Json, now: Instant) -> None:
    named = {"apiVersion": kind.api_version, "kind": kind.kind}
    with suppress(ApiError):  # a quota may be in the way
        create_as_apiserver(
            store, ({**named, "metadata": {**meta, "namespace": PLACE}, **content},), now
        )
