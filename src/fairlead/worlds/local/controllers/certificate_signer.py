"""Signers: approved CertificateSigningRequests get certificates of the cluster's own authority.

Who shows such a certificate is let in by the name and the groups that are in it.

upstream: pkg/controller/certificates/signer/signer.go:handle
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_timestamp
from fairlead.apiserver.auth.certificate_authority import CertificateKeyPair
from fairlead.apiserver.auth.certificate_signer import SIGNERS, request_of, sign, signing_problem
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.instant import Instant
from fairlead.worlds.local.field_manager import controllers_write

# As long as a kube-controller-manager lets them be valid by default, and at least.
LONGEST: Final = timedelta(days=365)
SHORTEST: Final = timedelta(minutes=10)
_SETTLED: Final = ("Denied", "Failed")
_KIND: Final = kind_of(
    {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
)


class Signers:
    """An Attendant that signs with `authority`."""

    def __init__(self, authority: CertificateKeyPair) -> None:
        """Nothing is kept."""
        self._authority = authority

    def attend(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See Attendant."""
        if change.kind is not _KIND or change.type is ChangeType.DELETED:
            return
        fields = self._answer(change.object, now) if _is_waiting(change.object) else None
        if fields is not None:
            name, write = change.object["metadata"]["name"], controllers_write(_KIND, "status", now)
            uid = change.object["metadata"]["uid"]
            store.patch_status(_KIND, "", name, fields, now, uid=uid, write=write)

    def _answer(self, obj: Json, now: Instant) -> Json | None:
        """What the status says then: the certificate, or why there is none."""
        spec = obj["spec"]
        usages: Sequence[str] = spec.get("usages") or ()
        request = request_of(b64decode(spec["request"]))
        wrong = signing_problem(spec["signerName"], request, usages)
        if wrong:
            conditions = obj["status"].get("conditions") or []
            return {"conditions": [*conditions, _failure(wrong, format_timestamp(now))]}
        began = datetime.fromtimestamp(now / NANOSECONDS_PER_SECOND, UTC)
        certificate = sign(self._authority, request, usages, began + _lifetime(spec))
        return {"certificate": b64encode(certificate.encode()).decode()}


def _is_waiting(obj: Json) -> bool:
    """Whether the request is approved, ours to sign, and not answered."""
    status = obj.get("status") or {}
    said = {row["type"] for row in status.get("conditions") or () if row.get("status") == "True"}
    is_open = "Approved" in said and not said.intersection(_SETTLED)
    is_ours = obj["spec"].get("signerName") in SIGNERS
    return is_ours and is_open and not status.get("certificate")


def _lifetime(spec: Json) -> timedelta:
    asked = spec.get("expirationSeconds")
    return LONGEST if asked is None else max(SHORTEST, min(LONGEST, timedelta(seconds=asked)))


def _failure(message: str, at: str) -> Json:
    return {
        "type": "Failed",
        "status": "True",
        "reason": "SignerValidationFailure",
        "message": message,
        "lastUpdateTime": at,
        "lastTransitionTime": at,
    }
