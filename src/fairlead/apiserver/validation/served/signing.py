"""CertificateSigningRequests: who asks whom to sign what.

upstream: pkg/apis/certificates/validation/validation.go,
pkg/apis/core/validation/names.go:ValidateSignerName
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.apiserver.validation.field import (
    Causes,
    duplicate,
    invalid,
    not_supported,
    required,
)
from fairlead.apiserver.validation.metadata import dns_subdomain_problems

Json = dict[str, Any]

LIFE_MIN_S: Final = 600
SIGNER_LENGTH_MAX: Final = 571
LEGACY: Final = "kubernetes.io/legacy-unknown"
USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign",
    "data encipherment", "decipher only", "digital signature", "email protection",
    "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement",
    "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_TWO_PARTS: Final = (
    "must be a fully qualified domain and path of the form 'example.com/signer-name'"
)


def check_request(obj: Json) -> Causes:
    """A CertificateSigningRequest; whether what it holds can be signed is not looked at."""
    spec = obj["spec"]
    usages = spec.get("usages") or []
    if not usages:
        yield required("spec.usages")
    for place, usage in enumerate(usages):
        if usage not in USAGES:
            yield not_supported(f"spec.usages[{place}]", usage, USAGES)
    for place, usage in enumerate(usages):
        if usage in usages[:place]:
            yield duplicate(f"spec.usages[{place}]", usage)
    yield from _check_signer("spec.signerName", spec.get("signerName", ""))
    life_s = spec.get("expirationSeconds")
    if life_s is not None and life_s < LIFE_MIN_S:
        why = f"may not specify a duration less than {LIFE_MIN_S} seconds (10 minutes)"
        yield invalid("spec.expirationSeconds", life_s, why)


def _check_signer(field: str, name: str) -> Causes:
    if not name:
        yield required(field)
        return
    if name == LEGACY:
        yield invalid(field, name, "the legacy signerName is not allowed via this API version")
        return
    domain, slash, path = name.partition("/")
    if not slash or "/" in path:
        yield invalid(field, name, _TWO_PARTS)
        return
    for problem in dns_subdomain_problems(domain):
        yield invalid(field, domain, f'validating label "{domain}": {problem}')
    for problem in dns_subdomain_problems(path):
        yield invalid(field, path, f'validating label "{path}": {problem}')
    if domain and "." not in domain:
        yield invalid(field, domain, "should be a domain with at least two segments")
