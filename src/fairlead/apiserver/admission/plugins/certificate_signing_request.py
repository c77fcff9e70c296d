"""CertificateSigningRequests: who asks is who is logged in, and what is asked for stays.

Approving takes the right to `approve` for the signer, signing that to `sign`; nobody may have
themselves made one of system:masters. What is approved is not signed here: whoever stands in for a
signer does that.

upstream: pkg/registry/certificates/certificates/strategy.go, plugin/pkg/admission/certificates/
{approval,signing,subjectrestriction}/admission.go
"""

from __future__ import annotations

import base64
from typing import Any, Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import Asked, Operation
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes, Authorizer
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.request import SYSTEM_MASTERS, User
from fairlead.apiserver.storage.storage import Storage

RESOURCE: Final = "certificatesigningrequests.certificates.k8s.io"
CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_ASKER: Final = ("username", "uid", "groups", "extra")


class CertificateRequests:
    """The admission plugin."""

    def admit(self, asked: Asked, storage: Storage) -> Json:
        """The request as it may pass. Raises ApiError 403."""
        kind, obj = asked.kind, asked.obj
        if kind.resource != RESOURCE:
            return obj
        user, rights = asked.about.write.user, asked.about.write.rights
        old = asked.about.old
        if asked.operation is Operation.CREATE and user is not None:
            _refuse_masters(kind, obj)
            return {**obj, "spec": _asked_by(user, obj["spec"])}
        if asked.operation is not Operation.UPDATE or old is None:
            return obj
        if not asked.about.subresource:
            return {**obj, "spec": old["spec"]}
        verb = _verb(asked.about.subresource, old, obj)
        if user is not None and rights is not None and verb:
            _require_right(rights, user, kind, old, verb)
        return obj


def _verb(subresource: str, old: Json, new: Json) -> str:
    """What a write asks the right for; "" if for nothing."""
    if subresource == "approval":
        return "approve"
    before, after = old.get("status") or {}, new.get("status") or {}
    same = all(before.get(key) == after.get(key) for key in ("certificate", "conditions"))
    return "sign" if subresource == "status" and not same else ""


def _asked_by(user: User, spec: Json) -> Json:
    """`spec` with whoever is logged in as the one who asks."""
    kept = {key: value for key, value in spec.items() if key not in _ASKER}
    told: dict[str, Any] = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {**kept, **{key: value for key, value in told.items() if value}}


def _refuse_masters(kind: Kind, obj: Json) -> None:
    spec = obj["spec"]
    if spec.get("signerName") == CLIENT_SIGNER and SYSTEM_MASTERS in _groups(spec):
        why = f"use of {CLIENT_SIGNER} signer with {SYSTEM_MASTERS} group is not allowed"
        raise forbidden(kind, "", obj["metadata"]["name"], why)


def _groups(spec: Json) -> tuple[str, ...]:
    """The organizations of the subject; none where nobody can read it."""
    try:
        request = x509.load_pem_x509_csr(base64.b64decode(spec.get("request", "")))
        named = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    except (ValueError, TypeError):
        return ()
    return tuple(str(attribute.value) for attribute in named)


def _require_right(rights: Authorizer, user: User, kind: Kind, obj: Json, verb: str) -> None:
    signer = obj["spec"].get("signerName", "")
    domain = signer.partition("/")[0]
    for name in (signer, f"{domain}/*"):
        asked = AuthorizationAttributes(
            user,
            verb,
            group=kind.group,
            version=kind.version,
            resource="signers",
            name=name,
        )
        if rights.verdict(asked).allowed:
            return
    why = f'user not permitted to {verb} requests with signerName "{signer}"'
    raise forbidden(kind, "", obj["metadata"]["name"], why)
