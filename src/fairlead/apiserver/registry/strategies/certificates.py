"""The strategy of CertificateSigningRequests: what the approver and the signer may change.

upstream: pkg/registry/certificates/certificates/strategy.go:csrStatusStrategy, csrApprovalStrategy
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.selectable_field import text_field
from fairlead.apiserver.registry.strategy import ResourceStrategy
from fairlead.apiserver.validation import certificates
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check

VERDICTS: Final = ("Approved", "Denied")
_CONDITIONS: Final = "conditions"


def _prepare_status(old: Json, new: Json, timestamp: str) -> Json:
    """`new` with the times of its conditions; verdicts cannot change."""
    status = new.get("status") or {}
    rows = status.get(_CONDITIONS) or []
    for verdict in VERDICTS:
        rows = _with_verdicts(_rows(old), rows, verdict)
    return {**new, "status": _with_rows(status, _timed(_rows(old), rows, timestamp))}


def _prepare_approval(old: Json, new: Json, timestamp: str) -> Json:
    """`old` with the conditions of `new` and their times."""
    rows = _timed(_rows(old), _rows(new), timestamp)
    return {**new, "status": _with_rows(old.get("status") or {}, rows)}


def _rows(obj: Json) -> list[Json]:
    return (obj.get("status") or {}).get(_CONDITIONS) or []


def _with_rows(status: Json, rows: list[Json]) -> Json:
    rest = {key: value for key, value in status.items() if key != _CONDITIONS}
    return {**rest, _CONDITIONS: rows} if rows else rest


def _with_verdicts(before: list[Json], rows: list[Json], verdict: str) -> list[Json]:
    """`rows` with the existing verdicts of `before`, if both have equally many."""
    # upstream: strategy.go:preserveConditionInstances
    had = [row for row in before if row.get("type") == verdict]
    if len(had) != sum(row.get("type") == verdict for row in rows):
        return rows
    kept = iter(had)
    return [next(kept) if row.get("type") == verdict else row for row in rows]


def _timed(before: list[Json], rows: list[Json], timestamp: str) -> list[Json]:
    """`rows` with the times of their last update and transition."""
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
            new=json_check(certificates.check_request),
            changed=json_check(lambda _: ()),
            subresources={
                "status": certificates.check_signed,
                "approval": certificates.check_decided,
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
