"""The requests that an authority signs or refuses, with the messages of upstream's signers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairlead.apiserver.auth import certificate_authority
from fairlead.apiserver.auth.certificate_authority import VALIDITY, new_authority
from fairlead.apiserver.auth.certificate_signer import (
    CLIENT,
    KUBELET_CLIENT,
    KUBELET_SERVING,
    request_of,
    sign,
    signing_problem,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ec.generate_private_key(ec.SECP256R1())
AUTHORITY = new_authority(NOW)
HOST = x509.DNSName("node-1")
ADDRESS = x509.IPAddress(ip_address("10.0.0.1"))
MAIL = x509.RFC822Name("a@example.com")
SIGNS = "digital signature"
ENCIPHERS = "key encipherment"


def request(name="system:node:a", groups=("system:nodes",), names=()):
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    made = builder.sign(KEY, hashes.SHA256())
    return request_of(b"something before\n" + made.public_bytes(serialization.Encoding.PEM))


@pytest.mark.parametrize(
    ("signer", "made", "usages", "wrong"),
    [
        (CLIENT, request("jane", ["dev"]), ["client auth"], ""),
        (CLIENT, request("jane", []), [SIGNS, ENCIPHERS, "client auth"], ""),
        (
            CLIENT,
            request("jane", []),
            ["server auth"],
            "invalid usage for client certificate: server auth",
        ),
        (
            CLIENT,
            request("jane", []),
            [SIGNS],
            "missing required usage for client certificate: client auth",
        ),
        (KUBELET_CLIENT, request(), [SIGNS, "client auth"], ""),
        (KUBELET_CLIENT, request(), [ENCIPHERS, SIGNS, "client auth"], ""),
        (
            KUBELET_CLIENT,
            request(groups=["dev"]),
            [SIGNS, "client auth"],
            "subject organization is not system:nodes",
        ),
        (
            KUBELET_CLIENT,
            request("jane"),
            [SIGNS, "client auth"],
            "subject common name does not begin with system:node:",
        ),
        (
            KUBELET_CLIENT,
            request(names=[HOST]),
            [SIGNS, "client auth"],
            "DNS subjectAltNames are not allowed",
        ),
        (
            KUBELET_CLIENT,
            request(),
            ["client auth"],
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (KUBELET_SERVING, request(names=[HOST, ADDRESS]), [SIGNS, "server auth"], ""),
        (
            KUBELET_SERVING,
            request(),
            [SIGNS, "server auth"],
            "DNS or IP subjectAltName is required",
        ),
        (
            KUBELET_SERVING,
            request(names=[HOST, MAIL]),
            [SIGNS, "server auth"],
            "Email subjectAltNames are not allowed",
        ),
        (
            KUBELET_SERVING,
            request("jane", names=[HOST]),
            ["server auth"],
            "usages did not match [digital signature key encipherment server auth]",
        ),
    ],
)
def test_a_signer_refuses_requests_that_break_its_rules(signer, made, usages, wrong):
    assert signing_problem(signer, made, usages) == wrong


def test_a_certificate_has_the_requested_fields():
    until = NOW + timedelta(hours=1)
    made = request(names=[HOST, ADDRESS])
    text = sign(AUTHORITY, made, [SIGNS, "server auth"], NOW, timedelta(hours=1))
    found = x509.load_pem_x509_certificate(text.encode())
    authority = x509.load_pem_x509_certificate(AUTHORITY.certificate.encode())
    found.verify_directly_issued_by(authority)
    assert found.subject == made.subject
    assert found.public_key() == KEY.public_key()
    assert found.not_valid_before_utc == authority.not_valid_before_utc
    assert found.not_valid_after_utc == until
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [HOST, ADDRESS]
    purposes = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(purposes) == [ExtendedKeyUsageOID.SERVER_AUTH]
    usage = found.extensions.get_extension_for_class(x509.KeyUsage).value
    assert (usage.digital_signature, usage.key_encipherment) == (True, False)


def test_a_certificate_without_key_usages_has_no_key_usage_extension():
    """An empty extension would make it malformed."""
    text = sign(AUTHORITY, request(), ["client auth"], NOW, timedelta(hours=1))
    extensions = x509.load_pem_x509_certificate(text.encode()).extensions
    assert x509.KeyUsage not in {type(one.value) for one in extensions}


def test_a_certificate_expires_no_later_than_its_authority(monkeypatch):
    monkeypatch.setattr(certificate_authority, "NO_EXPIRY", NOW + VALIDITY)
    text = sign(new_authority(NOW), request(), ["client auth"], NOW, 2 * VALIDITY)
    found = x509.load_pem_x509_certificate(text.encode())
    assert found.not_valid_after_utc == NOW + VALIDITY


def test_a_certificate_can_be_signed_at_a_time_before_that_of_the_authority():
    """With --keep-time, the clock of a cluster can be far behind the machine's clock."""
    earlier = NOW - timedelta(days=30)
    text = sign(AUTHORITY, request(), ["client auth"], earlier, timedelta(hours=1))
    found = x509.load_pem_x509_certificate(text.encode())
    assert found.not_valid_before_utc < earlier
    assert found.not_valid_after_utc == earlier + timedelta(hours=1)
