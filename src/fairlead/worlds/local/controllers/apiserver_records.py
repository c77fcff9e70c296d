"""ApiServerRecords: the objects that an API server publishes about itself in `kube-system`.

    ConfigMap extension-apiserver-authentication
        the CA of the client certificates that the server accepts; read by other API servers,
        kube-scheduler and kube-controller-manager
    ConfigMap kube-apiserver-legacy-service-account-token-tracking
        the date since which uses of legacy tokens are recorded
    Lease apiserver-HASH
        the server's heartbeat; HASH is derived from its host

The objects exist from the start and are recreated if they are deleted. There is no front proxy, so
the front proxy's CA is left out. Upstream renews the Lease every ten seconds. This controller
renews the Lease only when the server starts, so that an idle cluster stays idle.

upstream: pkg/controlplane/controller/clusterauthenticationtrust, legacytokentracking;
pkg/controlplane/apiserver/server.go:labelAPIServerHeartbeatFunc; apiserver/pkg/server/config.go
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import ClassVar, Final

from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Lease, Namespace, Unstructured
from fairlead.api.timestamp import format_micro_time, format_timestamp
from fairlead.api.well_known_label import HOSTNAME
from fairlead.apiserver.kind import CONFIG_MAP, LEASE, Kind
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import Command, CreateObject, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import API_SERVER, Issuer
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController

PLACE: Final = "kube-system"
AUTHENTICATION: Final = "extension-apiserver-authentication"
TRACKING: Final = "kube-apiserver-legacy-service-account-token-tracking"
CLIENT_AUTHORITY: Final = "client-ca-file"
PROGRAM: Final = "kube-apiserver"
DURATION_S: Final = 3_600
_DATE: Final = len("2026-01-01")
_HASH: Final = 16


def server_name(host: str) -> str:
    """Return the identity of an API server on `host`."""
    parts = (text.encode() for text in (host, PROGRAM))
    digest = sha256(b"".join(len(part).to_bytes(2, "big") + part for part in parts)).digest()
    return f"apiserver-{b32encode(digest[:_HASH]).decode().rstrip('=').lower()}"


class ApiServerRecords(ReactiveController):
    """Maintains the objects in which an API server publishes its identity, address and CA.

    `address` is the host and port that clients connect to. `host` is the name of the machine, and
    `authority` is the PEM text of the CA. `new_id` returns the random part of the Lease's
    holderIdentity.
    """

    issuer: ClassVar[Issuer] = API_SERVER
    interest: ClassVar[Interest] = Interest(
        changed=(Namespace, Lease, Unstructured),
        succeeded=(),
        failed=(CreateObject, PatchObject),
    )

    def __init__(
        self,
        storage: Storage,
        new_id: Callable[[], str],
        host: str,
        address: str,
        authority: str = "",
    ) -> None:
        """`authority` is the server's CA; if it is empty, the CA ConfigMap is not written."""
        super().__init__()
        self._storage = storage
        self._new_id = new_id
        self._host = host
        self._address = address
        self._authority = authority
        self._name = server_name(host)
        self._names = (AUTHENTICATION, TRACKING, self._name)
        self._is_renewed = False

    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Return the commands that create missing records and update outdated records.

        Returns [] if neither a record nor the namespace PLACE has changed.
        """
        for one, is_deleted in changed:
            meta = one.metadata
            has_begun = isinstance(one, Namespace) and meta.name == PLACE and not is_deleted
            if has_begun or (meta.name in self._names and meta.namespace == PLACE):
                return self._sync(now)
        return []

    def is_own(self, target: ObjectRef) -> bool:
        """Return whether `target` is an object that this controller maintains."""
        return target.name in self._names and target.namespace == PLACE

    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Return the commands that create missing records and update outdated records.

        This method is called after the API server refused a write of the record `target`. If
        `target` is the Lease, one of the commands renews the Lease.
        """
        if target.name == self._name:
            self._is_renewed = False
        return self._sync(now)

    def _sync(self, now: Instant) -> list[Command]:
        return [*self._authentication(), *self._tracking(now), *self._lease(now)]

    def _authentication(self) -> list[Command]:
        """Return the command that adds this server's CA to the CAs that other servers published.

        Returns [] if there is no CA, or if its text is published already.
        """
        if not self._authority:
            return []
        found = self._storage.find(CONFIG_MAP, PLACE, AUTHENTICATION)
        if found is None:
            data = {CLIENT_AUTHORITY: self._authority}
            return [_creation(CONFIG_MAP, {"name": AUTHENTICATION}, {"data": data})]
        known = (found.get("data") or {}).get(CLIENT_AUTHORITY, "")
        if self._authority.strip() in known:
            return []
        data = {CLIENT_AUTHORITY: known + self._authority}
        return [PatchObject(ObjectRef(CONFIG_MAP.kind, PLACE, AUTHENTICATION), {"data": data})]

    def _tracking(self, now: Instant) -> list[Command]:
        if self._storage.find(CONFIG_MAP, PLACE, TRACKING) is not None:
            return []
        data = {"since": format_timestamp(now)[:_DATE]}
        return [_creation(CONFIG_MAP, {"name": TRACKING}, {"data": data})]

    def _lease(self, now: Instant) -> list[Command]:
        lease, is_renewed = self._storage.find(LEASE, PLACE, self._name), self._is_renewed
        self._is_renewed = True
        if lease is None:
            return [_creation(LEASE, self._lease_meta(), {"spec": self._lease_spec(now)})]
        if is_renewed:
            return []
        renewal = {"spec": {"renewTime": format_micro_time(now)}}
        return [PatchObject(ObjectRef(LEASE.kind, PLACE, self._name), renewal)]

    def _lease_meta(self) -> Json:
        return {
            "name": self._name,
            "labels": {
                "apiserver.kubernetes.io/identity": PROGRAM,
                HOSTNAME: self._host,
            },
            "annotations": {"kubernetes.io/peer-advertise-address": self._address},
        }

    def _lease_spec(self, now: Instant) -> Json:
        return {
            "holderIdentity": f"{self._name}_{self._new_id()}",
            "leaseDurationSeconds": DURATION_S,
            "renewTime": format_micro_time(now),
        }


def _creation(kind: Kind, meta: Json, content: Json) -> Command:
    named = {"apiVersion": kind.api_version, "kind": kind.kind}
    return CreateObject({**named, "metadata": {**meta, "namespace": PLACE}, **content})
