"""CertificateSigningRequests: what whoever decides, and whoever signs, may change of a request.

upstream: pkg/registry/certificates/certificates/strategy.go:csrStatusStrategy, csrApprovalStrategy
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json

VERDICTS: Final = ("Approved", "Denied")
_CONDITIONS: Final = "conditions"


def reported(old: Json, new: Json, timestamp: str) -> Json:
    """`new` as its status is written: conditions have times, verdicts stay as they are."""
    status = new.get("status") or {}
    rows = status.get(_CONDITIONS) or []
    for verdict in VERDICTS:
        rows = _with_verdicts(_rows(old), rows, verdict)
    return {**new, "status": _with_rows(status, _timed(_rows(old), rows, timestamp))}


def decided(old: Json, new: Json, timestamp: str) -> Json:
    """`new` as it is approved or denied: nothing but its conditions differs from `old`."""
    rows = _timed(_rows(old), _rows(new), timestamp)
    return {**new, "status": _with_rows(old.get("status") or {}, rows)}


def _rows(obj: Json) -> list[Json]:
    return (obj.get("status") or {}).get(_CONDITIONS) or []


def _with_rows(status: Json, rows: list[Json]) -> Json:
    rest = {key: value for key, value in status.items() if key != _CONDITIONS}
    return {**rest, _CONDITIONS: rows} if rows else rest


def _with_verdicts(before: list[Json], rows: list[Json], verdict: str) -> list[Json]:
    """`rows` with the verdicts of `before`, if there are as many."""
    # upstream: strategy.go:preserveConditionInstances
    had = [row for row in before if row.get("type") == verdict]
    if len(had) != sum(row.get("type") == verdict for row in rows):
        return rows
    kept = iter(had)
    return [next(kept) if row.get("type") == verdict else row for row in rows]


def _timed(before: list[Json], rows: list[Json], timestamp: str) -> list[Json]:
    """`rows` that say when they came about."""
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
