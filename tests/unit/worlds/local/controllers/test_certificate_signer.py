"""The signer controller issues certificates for approved CertificateSigningRequests."""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fairlead.apiserver.auth.certificate_authority import new_authority

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"
START = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = new_authority(START)
KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.fixture
def signing(make_cluster):
    return make_cluster(authority=AUTHORITY.certificate, authority_key=AUTHORITY.key)


def ask(cluster, *, signer=CLIENT, usages=("client auth",), **fields):
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    made = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    spec = {"request": b64encode(made).decode(), "signerName": signer, "usages": list(usages)}
    obj = {"metadata": {"name": "a"}, "spec": {**spec, **fields}}
    return cluster.ask("POST", PATH, obj)


def decide(cluster, what):
    obj = cluster.ask("GET", f"{PATH}/a")
    obj["status"] = {"conditions": [{"type": what, "status": "True", "reason": "Test"}]}
    cluster.ask("PUT", f"{PATH}/a/approval", obj)
    return cluster.ask("GET", f"{PATH}/a")["status"]


@pytest.mark.parametrize(
    ("requested", "lifetime"),
    [
        ({}, timedelta(days=365)),
        ({"expirationSeconds": 3_600}, timedelta(hours=1)),
        ({"expirationSeconds": 600}, timedelta(minutes=10)),
        ({"expirationSeconds": 100_000_000}, timedelta(days=365)),
    ],
)
def test_an_approved_request_is_signed(signing, requested, lifetime):
    ask(signing, **requested)
    status = decide(signing, "Approved")
    found = x509.load_pem_x509_certificate(b64decode(status["certificate"]))
    assert found.public_key() == KEY.public_key()
    assert found.not_valid_after_utc == START + lifetime
    assert [row["type"] for row in status["conditions"]] == ["Approved"]


def test_a_request_without_approval_is_not_signed(signing):
    assert "certificate" not in ask(signing)["status"]


def test_a_denied_request_is_not_signed(signing):
    ask(signing)
    assert "certificate" not in decide(signing, "Denied")


def test_requests_for_other_signers_are_not_signed(signing):
    ask(signing, signer="example.com/other")
    assert "certificate" not in decide(signing, "Approved")


def test_an_unsuitable_request_gets_the_condition_failed(signing):
    ask(signing, usages=["server auth"])
    status = decide(signing, "Approved")
    failed = status["conditions"][1]
    assert (failed["type"], failed["reason"]) == ("Failed", "SignerValidationFailure")
    assert failed["message"] == "invalid usage for client certificate: server auth"
    assert "certificate" not in status


@pytest.mark.parametrize(
    "options", [{}, {"authority_key": AUTHORITY.key, "without": ("workloads",)}]
)
def test_no_request_is_signed_without_controllers_or_a_key(make_cluster, options):
    cluster = make_cluster(authority=AUTHORITY.certificate, **options)
    ask(cluster)
    assert "certificate" not in decide(cluster, "Approved")
