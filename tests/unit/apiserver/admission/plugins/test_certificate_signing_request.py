"""Admission of CertificateSigningRequests: the requesting user, approvals and signatures."""

from __future__ import annotations

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fairlead.apiserver.admission.attributes import Operation
from fairlead.apiserver.admission.plugins.certificate_signing_request import (
    CLIENT_SIGNER,
    CertificateSigningRequests,
)
from fairlead.apiserver.auth.authentication.token import authenticated
from fairlead.apiserver.auth.authorization.rbac import Rbac

GROUP = "certificates.k8s.io/v1"
APPROVED = {"type": "Approved", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}


@pytest.fixture
def joe():
    return authenticated("joe", ("dev",), "1")


@pytest.fixture
def request_of(obj):
    """Makes CertificateSigningRequests with these organizations in the subject."""

    def made(*organizations, conditions=(), **spec):
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
        subject = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names))
        signed = subject.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
        text = base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()
        wanted = {"request": text, "signerName": CLIENT_SIGNER, "usages": ["client auth"], **spec}
        status = {"conditions": list(conditions)} if conditions else {}
        kind = "CertificateSigningRequest"
        return obj(kind, "c", "", GROUP, spec=wanted, status=status)

    return made


def test_the_request_gets_the_identity_of_the_authenticated_user(gate, request_of, joe):
    """The user fields in the request are ignored."""
    spec = gate(CertificateSigningRequests()).admits(
        request_of(username="root", extra={}), user=joe
    )["spec"]
    assert (spec["username"], spec["uid"], spec["groups"]) == (
        "joe",
        "1",
        ["dev", "system:authenticated"],
    )
    assert "extra" not in spec


def test_the_group_system_masters_cannot_be_requested_from_the_client_signer(gate, request_of, joe):
    """Other signers accept the group, and a request that cannot be parsed is not checked."""
    asking = gate(CertificateSigningRequests())
    why = f"use of {CLIENT_SIGNER} signer with system:masters group is not allowed"
    assert asking.refusal(request_of("system:masters"), user=joe) == (
        f'certificatesigningrequests.certificates.k8s.io "c" is forbidden: {why}'
    )
    assert asking.admits(request_of("system:masters", signerName="a.b/c"), user=joe)
    assert asking.admits(request_of(request="bm8gY2VydGlmaWNhdGU="), user=joe)


def test_the_spec_of_a_request_cannot_be_changed(gate, request_of, joe):
    old = request_of()
    new = {**old, "spec": {**old["spec"], "usages": []}}
    admitted = gate(CertificateSigningRequests()).admits(new, Operation.UPDATE, old=old, user=joe)
    assert admitted["spec"] == old["spec"]


def test_approving_requires_the_verb_approve_for_the_signer(gate, obj, request_of, joe):
    """A rule for one signer or for its whole domain suffices."""
    role = obj(
        "ClusterRole",
        "r",
        "",
        "rbac.authorization.k8s.io/v1",
        rules=[
            {
                "apiGroups": ["certificates.k8s.io"],
                "resources": ["signers"],
                "verbs": ["approve"],
                "resourceNames": ["kubernetes.io/*"],
            }
        ],
    )
    binding = obj(
        "ClusterRoleBinding",
        "b",
        "",
        "rbac.authorization.k8s.io/v1",
        roleRef={"kind": "ClusterRole", "name": "r"},
        subjects=[{"kind": "User", "name": "ann"}],
    )
    approving = gate(CertificateSigningRequests()).has(role, binding)
    old, new = request_of(), request_of(conditions=[APPROVED])
    rights = Rbac(approving.storage)
    about = {"old": old, "subresource": "approval", "rights": rights}
    assert approving.refusal(new, Operation.UPDATE, user=joe, **about) == (
        'certificatesigningrequests.certificates.k8s.io "c" is forbidden: user not permitted to '
        f'approve requests with signerName "{CLIENT_SIGNER}"'
    )
    ann = authenticated("ann")
    assert approving.admits(new, Operation.UPDATE, user=ann, **about) == new


def test_signing_requires_the_verb_sign_for_the_signer(gate, request_of, joe):
    """A write that changes no condition and no certificate requires no right."""
    old, new = request_of(), request_of(conditions=[APPROVED])
    signing = gate(CertificateSigningRequests())
    about = {"old": old, "subresource": "status", "rights": Rbac(signing.storage)}
    assert signing.refusal(new, Operation.UPDATE, user=joe, **about) == (
        'certificatesigningrequests.certificates.k8s.io "c" is forbidden: user not permitted to '
        f'sign requests with signerName "{CLIENT_SIGNER}"'
    )
    assert signing.admits(old, Operation.UPDATE, user=joe, **about) == old


def test_other_kinds_are_admitted_unchanged(gate, pod):
    assert gate(CertificateSigningRequests()).admits(pod()) == pod()
