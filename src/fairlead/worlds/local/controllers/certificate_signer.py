"""CertificateSigner: signs approved CertificateSigningRequests with the cluster's CA.

A client can present a signed certificate to the API server. The certificate's common name is then
the client's user name, and the certificate's organizations are the user's groups.

upstream: pkg/controller/certificates/signer/signer.go:handle
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Unstructured
from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_timestamp
from fairlead.apiserver.auth.certificate_authority import CertificateKeyPair
from fairlead.apiserver.auth.certificate_signer import SIGNERS, request_of, sign, signing_problem
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import Command, ObjectRef, PatchStatus
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController, kind_name

# The longest validity, which is kube-controller-manager's default, and the shortest.
LONGEST: Final = timedelta(days=365)
SHORTEST: Final = timedelta(minutes=10)
_CLOSED: Final = ("Denied", "Failed")
_KIND: Final = kind_of(
    {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
)


class CertificateSigner(ReactiveController):
    """Signs approved CertificateSigningRequests with the CA `authority`."""

    issuer: ClassVar[Issuer] = controller_account("certificate-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Unstructured,), deleted=(), succeeded=(), failed=(PatchStatus,)
    )

    def __init__(self, storage: Storage, authority: CertificateKeyPair) -> None:
        super().__init__()
        self._storage = storage
        self._authority = authority

    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Sign approved CertificateSigningRequests in `changed`; mark invalid ones as failed."""
        names = [
            one.metadata.name
            for one, is_deleted in changed
            if not is_deleted and kind_name(one) == _KIND.kind
        ]
        return [command for name in names for command in self._sync(name, now)]

    def is_own(self, target: ObjectRef) -> bool:
        """Return whether `target` is a CertificateSigningRequest."""
        return target.kind == _KIND.kind

    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Return the command that answers the CertificateSigningRequest `target`.

        The command adds the certificate. If the request breaks a rule of its signer, the command
        marks the request as failed instead. Returns [] if `target` does not wait for a certificate
        of this controller.
        """
        return self._sync(target.name, now)

    def _sync(self, name: str, now: Instant) -> list[Command]:
        obj = self._storage.find(_KIND, "", name)
        if obj is None or not _is_waiting(obj):
            return []
        target = ObjectRef(_KIND.kind, "", name, obj["metadata"]["uid"])
        return [PatchStatus(target, self._answer(obj, now))]

    def _answer(self, obj: Json, now: Instant) -> Json:
        """Return the new status of the CertificateSigningRequest `obj`.

        The status contains the certificate, or the condition Failed if the request is not valid.
        """
        spec = obj["spec"]
        usages: Sequence[str] = spec.get("usages") or ()
        request = request_of(b64decode(spec["request"]))
        wrong = signing_problem(spec["signerName"], request, usages)
        if wrong:
            conditions = obj["status"].get("conditions") or []
            return {"conditions": [*conditions, _failure(wrong, format_timestamp(now))]}
        began = datetime.fromtimestamp(now / NANOSECONDS_PER_SECOND, UTC)
        certificate = sign(self._authority, request, usages, began, _lifetime(spec))
        return {"certificate": b64encode(certificate.encode()).decode()}


def _is_waiting(obj: Json) -> bool:
    """Return whether the request is approved, unanswered, and for this controller's signers."""
    status = obj.get("status") or {}
    conditions = {
        row["type"] for row in status.get("conditions") or () if row.get("status") == "True"
    }
    is_open = "Approved" in conditions and not conditions.intersection(_CLOSED)
    is_ours = obj["spec"].get("signerName") in SIGNERS
    return is_ours and is_open and not status.get("certificate")


def _lifetime(spec: Json) -> timedelta:
    seconds = spec.get("expirationSeconds")
    return LONGEST if seconds is None else max(SHORTEST, min(LONGEST, timedelta(seconds=seconds)))


def _failure(message: str, at: str) -> Json:
    return {
        "type": "Failed",
        "status": "True",
        "reason": "SignerValidationFailure",
        "message": message,
        "lastUpdateTime": at,
        "lastTransitionTime": at,
    }
