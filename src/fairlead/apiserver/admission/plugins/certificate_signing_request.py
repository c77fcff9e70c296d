"""CertificateApproval, CertificateSigning and CertificateSubjectRestriction: checks of CSRs.

A user who approves a CertificateSigningRequest needs the permission `approve` for its signer. A
user who changes the CSR's certificate or conditions needs the permission `sign`. A CSR for a
client certificate of the group system:masters is refused. The requester's identity is set on
creation, and the spec cannot change.

upstream: pkg/registry/certificates/certificates/strategy.go, plugin/pkg/admission/certificates/
{approval,signing,subjectrestriction}/admission.go
"""

from __future__ import annotations

import base64
from typing import Any, Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.auth.authorizer import AuthorizationAttributes, Authorizer
from fairlead.apiserver.error import forbidden
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.request import SYSTEM_MASTERS, User
from fairlead.apiserver.storage.storage import Storage

RESOURCE: Final = "certificatesigningrequests.certificates.k8s.io"
CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
_REQUESTER_FIELDS: Final = ("username", "uid", "groups", "extra")


class CertificateSigningRequests:
    """Sets the requester of CertificateSigningRequests, and checks who approves and signs them."""

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Return the object, with the requester's identity if it is a new CSR.

        Raises ApiError 403 if the requester may not make this change.
        """
        kind, obj = attributes.kind, attributes.obj
        if kind.resource != RESOURCE:
            return obj
        user, rights = attributes.write.user, attributes.write.rights
        old = attributes.old
        if attributes.operation is Operation.CREATE and user is not None:
            _refuse_system_masters(kind, obj)
            return {**obj, "spec": _with_requester(user, obj["spec"])}
        if attributes.operation is not Operation.UPDATE or old is None:
            return obj
        if not attributes.subresource:
            return {**obj, "spec": old["spec"]}
        verb = _required_verb(attributes.subresource, old, obj)
        if user is not None and rights is not None and verb:
            _require_permission(rights, user, kind, old, verb)
        return obj


def _required_verb(subresource: str, old: Json, new: Json) -> str:
    """Return the verb that an update needs: "approve", "sign", or "" if it needs no permission."""
    if subresource == "approval":
        return "approve"
    before, after = old.get("status") or {}, new.get("status") or {}
    is_unchanged = all(before.get(key) == after.get(key) for key in ("certificate", "conditions"))
    return "sign" if subresource == "status" and not is_unchanged else ""


def _with_requester(user: User, spec: Json) -> Json:
    """Return `spec` with the identity of the requesting user."""
    kept = {key: value for key, value in spec.items() if key not in _REQUESTER_FIELDS}
    requester: dict[str, Any] = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {**kept, **{key: value for key, value in requester.items() if value}}


def _refuse_system_masters(kind: Kind, obj: Json) -> None:
    spec = obj["spec"]
    if spec.get("signerName") == CLIENT_SIGNER and SYSTEM_MASTERS in _organizations(spec):
        reason = f"use of {CLIENT_SIGNER} signer with {SYSTEM_MASTERS} group is not allowed"
        raise forbidden(kind, "", obj["metadata"]["name"], reason)


def _organizations(spec: Json) -> tuple[str, ...]:
    """Return the organizations in the requested subject; () if the request is malformed."""
    try:
        request = x509.load_pem_x509_csr(base64.b64decode(spec.get("request", "")))
        organizations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    except (ValueError, TypeError):
        return ()
    return tuple(str(attribute.value) for attribute in organizations)


def _require_permission(rights: Authorizer, user: User, kind: Kind, obj: Json, verb: str) -> None:
    signer = obj["spec"].get("signerName", "")
    domain = signer.partition("/")[0]
    for name in (signer, f"{domain}/*"):
        request = AuthorizationAttributes(
            user,
            verb,
            group=kind.group,
            version=kind.version,
            resource="signers",
            name=name,
        )
        if rights.verdict(request).allowed:
            return
    reason = f'user not permitted to {verb} requests with signerName "{signer}"'
    raise forbidden(kind, "", obj["metadata"]["name"], reason)
