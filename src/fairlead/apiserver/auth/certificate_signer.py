"""Signs approved CertificateSigningRequests, or returns the reason for a refusal.

There are three signers:

    kubernetes.io/kube-apiserver-client           client certificates of any user
    kubernetes.io/kube-apiserver-client-kubelet   client certificates of kubelets
    kubernetes.io/kubelet-serving                 server certificates of kubelets

upstream: pkg/controller/certificates/signer/signer.go, pkg/controller/certificates/authority,
pkg/apis/certificates/helpers.go
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairlead.apiserver.auth.certificate_authority import BACKDATING, CertificateKeyPair

CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
SIGNERS: Final = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING)

_PURPOSES: Final = {
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
}
_SIGNATURE: Final = "digital signature"
_ENCIPHERMENT: Final = "key encipherment"
_PEM_HEADER: Final = b"-----BEGIN CERTIFICATE REQUEST-----"
_NODES: Final = "system:nodes"
_NODE: Final = "system:node:"
_NAME_PROBLEM: Final = f"subject common name does not begin with {_NODE}"
_NAME_TYPES: Final = (
    (x509.DNSName, "DNS"),
    (x509.RFC822Name, "Email"),
    (x509.IPAddress, "IP"),
    (x509.UniformResourceIdentifier, "URI"),
)


def request_of(content: bytes) -> x509.CertificateSigningRequest:
    """Return the PEM certificate request in `content`.

    Raises ValueError if there is no valid request.
    """
    return x509.load_pem_x509_csr(content[content.index(_PEM_HEADER) :])


def signing_problem(
    signer: str, request: x509.CertificateSigningRequest, usages: Sequence[str]
) -> str:
    """Return the reason why `signer` refuses to sign `request`; "" if it signs.

    `signer` is one of SIGNERS. `usages` are the requested usages, such as `client auth`.
    """
    if signer == CLIENT:
        return _client_usage_problem(usages)
    is_server = signer == KUBELET_SERVING
    if _texts(request, NameOID.ORGANIZATION_NAME) != [_NODES]:
        return f"subject organization is not {_NODES}"
    if problem := _name_problem(request, is_server=is_server):
        return problem
    purpose = "server auth" if is_server else "client auth"
    required_usages = {_ENCIPHERMENT, _SIGNATURE, purpose}
    usages_problem = (
        ""
        if set(usages) in (required_usages, required_usages - {_ENCIPHERMENT})
        else f"usages did not match [{' '.join(sorted(required_usages))}]"
    )
    common_name = "".join(_texts(request, NameOID.COMMON_NAME)[-1:])
    name_problem = "" if common_name.startswith(_NODE) else _NAME_PROBLEM
    # upstream checks the usages first for servers, and the name first for clients
    return (usages_problem or name_problem) if is_server else (name_problem or usages_problem)


def sign(
    authority: CertificateKeyPair,
    request: x509.CertificateSigningRequest,
    usages: Sequence[str],
    now: datetime,
    lifetime: timedelta,
) -> str:
    """Return the certificate (PEM) for `request`.

    The certificate expires at `now + lifetime` or with the authority's certificate, whichever is
    earlier. To tolerate clock skew, it is valid from `now - BACKDATING` or from the start of the
    authority's certificate, whichever is earlier.
    """
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    signer = serialization.load_pem_private_key(authority.key.encode(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(issuer.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now - BACKDATING, issuer.not_valid_before_utc))
        .not_valid_after(min(now + lifetime, issuer.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(issued_by, critical=False)
    )
    if _SIGNATURE in usages or _ENCIPHERMENT in usages:  # the extension must not be empty
        builder = builder.add_extension(_key_usage(usages), critical=True)
    purposes = [_PURPOSES[usage] for usage in usages if usage in _PURPOSES]
    if purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    names = _alternatives(request)
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    certificate = builder.sign(signer, hashes.SHA256())
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _client_usage_problem(usages: Sequence[str]) -> str:
    for usage in usages:
        if usage not in (_SIGNATURE, _ENCIPHERMENT, "client auth"):
            return f"invalid usage for client certificate: {usage}"
    if "client auth" not in usages:
        return "missing required usage for client certificate: client auth"
    return ""


def _name_problem(request: x509.CertificateSigningRequest, *, is_server: bool) -> str:
    """Return the reason why the subjectAltNames of `request` are not allowed; "" if they are.

    A serving certificate (`is_server`) needs DNS names or IP addresses. A client certificate must
    not have subjectAltNames.
    """
    names = list(_alternatives(request) or ())
    if is_server and not any(isinstance(one, x509.DNSName | x509.IPAddress) for one in names):
        return "DNS or IP subjectAltName is required"
    for kind, title in _NAME_TYPES:
        is_allowed = is_server and title in ("DNS", "IP")
        if not is_allowed and any(isinstance(one, kind) for one in names):
            return f"{title} subjectAltNames are not allowed"
    return ""


def _texts(request: x509.CertificateSigningRequest, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(one.value) for one in request.subject.get_attributes_for_oid(oid)]


def _alternatives(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    try:
        return request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None


def _key_usage(usages: Sequence[str]) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=_SIGNATURE in usages,
        key_encipherment=_ENCIPHERMENT in usages,
        key_cert_sign=False,
        crl_sign=False,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
