"""The strategy of CertificateSigningRequests, and the fields that approvers and signers may change.

upstream: pkg/registry/certificates/certificates/strategy.go:csrStatusStrategy, csrApprovalStrategy,
pkg/apis/certificates/validation/validation.go,
pkg/apis/core/validation/names.go:ValidateSignerName
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from fairlead.api.json import Json
from fairlead.apiserver.registry.strategy import ResourceStrategy, text_field
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import dns_subdomain_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check

# --- validation ----------------------------------------------------------------------------------

_SPEC: Final = "certificates.v1.CertificateSigningRequestSpec"
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


_HEAD: Final = b"-----BEGIN CERTIFICATE REQUEST-----"
_CERTIFICATE_HEAD: Final = b"-----BEGIN CERTIFICATE-----"
_TRUE_ONLY: Final = ("Approved", "Denied", "Failed")
_VERDICTS: Final = ("Approved", "Denied")
_STATUSES: Final = ("False", "True", "Unknown")


def check_request(obj: Json) -> Causes:
    """Yield the errors of a CertificateSigningRequest."""
    spec = obj["spec"]
    problem = _csr_problem(spec.get("request") or "")
    if problem:
        yield invalid("spec.request", spec.get("request") or "", problem)
    usages = spec.get("usages") or []
    yield from check_fields("spec", _SPEC, spec, "usages")
    for index, usage in enumerate(usages):
        if usage not in USAGES:
            yield not_supported(f"spec.usages[{index}]", usage, USAGES)
    for index in sorted(repeated_indexes(usages)):
        yield duplicate(f"spec.usages[{index}]", usages[index])
    yield from _check_signer("spec.signerName", spec.get("signerName", ""))
    yield from check_fields("spec", _SPEC, spec, "expirationSeconds")


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


def _csr_problem(text: str) -> str:
    """Return why the certificate request `text` (base64 of PEM) is invalid; "" if it is valid."""
    # upstream: validation.go:validateCSR, pkg/apis/certificates/helpers.go:ParseCSR
    content = _decoded(text)
    if _HEAD not in content:
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        is_signed = x509.load_pem_x509_csr(content[content.index(_HEAD) :]).is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "asn1: structure error: malformed certificate request"
    return "" if is_signed else "x509: signature verification failure"


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


# --- status and approval -------------------------------------------------------------------


def check_signed(old: Json, new: Json) -> Causes:
    """Yield the errors of a signer's status update, which changes `old` to `new`."""
    yield from _check_state(old, new)
    had, has = _rows(old), _rows(new)
    for verdict in _VERDICTS:
        if _count(has, verdict) > _count(had, verdict):
            why = f'updates may not add a condition of type "{verdict}"'
            yield forbidden("status.conditions", why)
    before, after = _certificate(old), _certificate(new)
    if before and before != after:
        why = "updates may not modify existing certificate content"
        yield forbidden("status.certificate", why)


def check_decided(old: Json, new: Json) -> Causes:
    """Yield the errors of an approval or denial, which changes `old` to `new`."""
    yield from _check_state(old, new)


def _check_state(old: Json, new: Json) -> Causes:
    had, has = _rows(old), _rows(new)
    yield from _check_rows(had, has)
    if _certificate(old) != _certificate(new):
        problem = _certificate_problem(_certificate(new))
        if problem:
            yield invalid("status.certificate", "<certificate data>", problem)
    for kind in _TRUE_ONLY:
        if _count(has, kind) < _count(had, kind):
            why = f'updates may not remove a condition of type "{kind}"'
            yield forbidden("status.conditions", why)


def _check_rows(had: list[Json], has: list[Json]) -> Causes:
    had_both = all(_count(had, verdict) for verdict in _VERDICTS)
    seen: set[str] = set()
    for index, row in enumerate(has):
        at, kind = f"status.conditions[{index}]", row.get("type") or ""
        if not kind and not _count(had, ""):
            yield required(f"{at}.type")
        yield from _check_truth(f"{at}.status", kind, row.get("status") or "")
        if kind in _VERDICTS and not had_both and _other(kind) in seen:
            why = "Approved and Denied conditions are mutually exclusive"
            yield invalid("status.conditions", kind, why)
        if kind in seen and not _repeats(had):
            yield duplicate(f"{at}.type", kind)
        seen.add(kind)


def _other(verdict: str) -> str:
    return _VERDICTS[1 - _VERDICTS.index(verdict)]


def _check_truth(field: str, kind: str, status: str) -> Causes:
    allowed = ("True",) if kind in _TRUE_ONLY else _STATUSES
    if not status:
        yield required(field)
    elif status not in allowed:
        yield not_supported(field, status, allowed)


def _repeats(rows: list[Json]) -> bool:
    kinds = [row.get("type") or "" for row in rows]
    return len(set(kinds)) < len(kinds)


def _certificate_problem(text: str) -> str:
    # upstream: validation.go:validateCertificate
    content = _decoded(text)
    if not text:
        return ""
    if _CERTIFICATE_HEAD not in content:
        return "must contain at least one CERTIFICATE PEM block"
    try:
        x509.load_pem_x509_certificates(content)
    except ValueError:
        return "x509: malformed certificate"
    return ""


def _certificate(obj: Json) -> str:
    return (obj.get("status") or {}).get("certificate") or ""


def _count(rows: Iterable[Json], kind: str) -> int:
    return sum((row.get("type") or "") == kind for row in rows)


_CONDITIONS: Final = "conditions"


def _prepare_status(old: Json, new: Json, timestamp: str) -> Json:
    """Return `new` with the approvals and denials of `old`, and with times in all conditions."""
    status = new.get("status") or {}
    rows = status.get(_CONDITIONS) or []
    for verdict in _VERDICTS:
        rows = _with_verdicts(_rows(old), rows, verdict)
    return {**new, "status": _with_rows(status, _timed(_rows(old), rows, timestamp))}


def _prepare_approval(old: Json, new: Json, timestamp: str) -> Json:
    """Return `new` with the status of `old`, except for its conditions, which come from `new`."""
    rows = _timed(_rows(old), _rows(new), timestamp)
    return {**new, "status": _with_rows(old.get("status") or {}, rows)}


def _rows(obj: Json) -> list[Json]:
    return (obj.get("status") or {}).get(_CONDITIONS) or []


def _with_rows(status: Json, rows: list[Json]) -> Json:
    rest = {key: value for key, value in status.items() if key != _CONDITIONS}
    return {**rest, _CONDITIONS: rows} if rows else rest


def _with_verdicts(before: list[Json], rows: list[Json], verdict: str) -> list[Json]:
    """Return the conditions `rows`, but take those of type `verdict` from `before`.

    If `before` has more or fewer conditions of this type than `rows`, return `rows` unchanged.
    """
    # upstream: strategy.go:preserveConditionInstances
    had = [row for row in before if row.get("type") == verdict]
    if len(had) != sum(row.get("type") == verdict for row in rows):
        return rows
    kept = iter(had)
    return [next(kept) if row.get("type") == verdict else row for row in rows]


def _timed(before: list[Json], rows: list[Json], timestamp: str) -> list[Json]:
    """Return the conditions `rows` with lastUpdateTime and lastTransitionTime set.

    A missing lastTransitionTime is taken from the condition in `before` that has the same type and
    status. Other missing times become `timestamp`.
    """
    # upstream: strategy.go:populateConditionTimestamps
    since: dict[tuple[str, str], str] = {}
    for row in before:
        if row.get("lastTransitionTime"):
            since.setdefault(_state(row), row["lastTransitionTime"])
    return [
        {
            **row,
            "lastUpdateTime": row.get("lastUpdateTime") or timestamp,
            "lastTransitionTime": row.get("lastTransitionTime")
            or since.get(_state(row), timestamp),
        }
        for row in rows
    ]


def _state(row: Json) -> tuple[str, str]:
    return row.get("type") or "", row.get("status") or ""


STRATEGIES: Final[Mapping[str, ResourceStrategy]] = {
    "certificatesigningrequests.certificates.k8s.io": ResourceStrategy(
        prepare_subresource={"status": _prepare_status, "approval": _prepare_approval},
        rules=KindRules(
            new=json_check(check_request),
            changed=json_check(lambda _: ()),
            subresources={
                "status": check_signed,
                "approval": check_decided,
            },
        ),
        selectable_fields={"spec.signerName": text_field("spec", "signerName")},
        selects_namespace=False,
        reset_fields={
            "status": (("status", "conditions"),),
            "approval": (("status", "certificate"),),
        },
    )
}
