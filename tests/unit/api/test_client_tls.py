"""Certificates of servers are verified as Go verifies them, on every version of Python."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fairlead.api.client_tls import client_tls_context

HOST = "kubernetes.default"
AUTHORITY = x509.BasicConstraints(ca=True, path_length=None)
SERVER = x509.SubjectAlternativeName([x509.DNSName(HOST)])


class Certificate:
    """A certificate and its key; `issuer` None means that the certificate is self-signed.

    The only extension is `extension`. So the certificate violates RFC 5280: an authority should
    state its key usage, and each other certificate should identify the key of its authority.
    """

    def __init__(self, name, extension, issuer=None):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        signer = issuer or self
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.subject)
            .issuer_name(signer.subject)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
            .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
            .add_extension(extension, critical=True)
        )
        signed = builder.sign(signer.key, SHA256())
        self.text = signed.public_bytes(Encoding.PEM).decode()

    def key_text(self):
        encoded = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return encoded.decode()


@pytest.fixture(scope="module")
def root():
    return Certificate("root", AUTHORITY)


@pytest.fixture
def connect(tmp_path):
    """Return a function that connects a client, which has a TLS context, with a server."""

    def handshake(context, server, *chain):
        pem = tmp_path / "server.pem"
        pem.write_text("".join(one.text for one in (server, *chain)) + server.key_text())
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(pem)
        requests, responses = ssl.MemoryBIO(), ssl.MemoryBIO()
        ends = [
            context.wrap_bio(responses, requests, server_hostname=HOST),
            serving.wrap_bio(requests, responses, server_side=True),
        ]
        while ends:
            for end in list(ends):
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
                ends.remove(end)

    return handshake


def test_a_certificate_that_does_not_identify_the_key_of_its_authority_is_trusted(connect, root):
    server = Certificate("server", SERVER, root)
    connect(client_tls_context(authority=root.text), server)


def test_an_intermediate_authority_is_trusted_without_its_root(connect, root):
    intermediate = Certificate("intermediate", AUTHORITY, root)
    server = Certificate("server", SERVER, intermediate)
    connect(client_tls_context(authority=intermediate.text), server)


def test_the_certificate_of_the_server_itself_can_be_trusted(connect, root, tmp_path):
    server = Certificate("server", SERVER, root)
    file = tmp_path / "trusted.pem"
    file.write_text(server.text)
    connect(client_tls_context(authority_file=str(file)), server)


def test_comments_in_a_bundle_may_contain_any_characters(connect, root):
    """Mozilla's bundle has such a comment."""
    context = client_tls_context(authority=f"# F\u0151tan\u00fas\u00edtv\u00e1ny\n{root.text}")
    connect(context, Certificate("server", SERVER, root))


def test_an_authority_that_signs_a_certificate_must_be_one(connect, root):
    """A server cannot issue certificates for other servers."""
    server = Certificate("server", SERVER, root)
    other = Certificate("other", SERVER, server)
    with pytest.raises(ssl.SSLCertVerificationError, match="invalid CA certificate"):
        connect(client_tls_context(authority=root.text), other, server)


def test_another_authority_is_refused(connect, root):
    server = Certificate("server", SERVER, Certificate("root", AUTHORITY))
    with pytest.raises(ssl.SSLCertVerificationError):
        connect(client_tls_context(authority=root.text), server)


def test_another_name_is_refused(connect, root):
    another = x509.SubjectAlternativeName([x509.DNSName("another.default")])
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        connect(client_tls_context(authority=root.text), Certificate("server", another, root))
