"""The cluster's certificate authority, and the certificates that it issues to servers and clients.

upstream: client-go/util/cert/cert.go
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

AUTHORITY_NAME: Final = "fairlead-ca"
VALIDITY: Final = timedelta(days=3650)  # of server certificates
# RFC 5280, 4.1.2.5: the certificate has no well-defined expiration date. The clock of a cluster, by
# which client certificates expire, can be far ahead of the machine's clock.
NO_EXPIRY: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
# Certificates become valid this long before they are made, to tolerate clients whose clock is
# slow.
BACKDATING: Final = timedelta(hours=1)
# The API server's names in a cluster; upstream: kubeadm's pkiutil.GetAPIServerAltNames
SERVER_NAMES: Final = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
)


class CertificateKeyPair(Struct, frozen=True):
    """A certificate and its private key, both as PEM text."""

    certificate: str
    key: str


def new_authority(now: datetime) -> CertificateKeyPair:
    """Return a new certificate authority. `now` must have a time zone.

    The certificate becomes valid at `now - BACKDATING` and does not expire.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(AUTHORITY_NAME)
    builder = (
        _builder(name, name, key, now, NO_EXPIRY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def new_server(
    authority: CertificateKeyPair, hosts: Iterable[str], now: datetime
) -> CertificateKeyPair:
    """Return a server certificate for `hosts` (names and addresses) and SERVER_NAMES.

    The certificate expires at `now + VALIDITY`.
    """
    names = dict.fromkeys((*SERVER_NAMES, *hosts))
    alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
    return _signed(authority, _name("fairlead"), now, alternatives)


def new_client(
    authority: CertificateKeyPair, user: str, groups: Iterable[str], now: datetime
) -> CertificateKeyPair:
    """Return a client certificate for the user `user`, a member of `groups`; it does not expire."""
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    name = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    return _signed(authority, name, now, None)


def is_certificate(text: str) -> bool:
    """Return whether `text` is a PEM certificate."""
    try:
        x509.load_pem_x509_certificate(text.encode())
    except ValueError:
        return False
    return True


def is_key(text: str) -> bool:
    """Return whether `text` is a PEM private key on an elliptic curve."""
    try:
        key = serialization.load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError):
        return False
    return isinstance(key, ec.EllipticCurvePrivateKey)


def _signed(
    authority: CertificateKeyPair,
    name: x509.Name,
    now: datetime,
    hosts: x509.SubjectAlternativeName | None,
) -> CertificateKeyPair:
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    signer = serialization.load_pem_private_key(authority.key.encode(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH if hosts is None else ExtendedKeyUsageOID.SERVER_AUTH
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = (
        _builder(name, issuer.subject, key, now, NO_EXPIRY if hosts is None else now + VALIDITY)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(issued_by, critical=False)
    )
    if hosts is not None:
        builder = builder.add_extension(hosts, critical=False)
    return _pair(builder.sign(signer, hashes.SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    not_after: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATING)
        .not_valid_after(not_after)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> CertificateKeyPair:
    encoding, text = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(encoding, text, serialization.NoEncryption())
    return CertificateKeyPair(certificate.public_bytes(encoding).decode(), secret.decode())
