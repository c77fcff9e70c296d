"""The kinds of recorded Karpenter cases, and the replay of one case.

A stable case had the same outcome in all recorded runs, and must agree with this outcome. The other
cases depend on the order of Go maps upstream. Such cases must agree with the recorded outcome or
with a recorded alternative. The order of NodeClaims is ignored, and so are tiny differences between
numbers that are not integers, such as prices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.conformance.comparison import Mismatch, first_mismatch
from fairlead.conformance.karpenter.claim_status import decide_claim_status, decide_static
from fairlead.conformance.karpenter.disruption import decide_disruption
from fairlead.conformance.karpenter.provisioning import decide_provisioning
from fairlead.conformance.karpenter.timeline import decide_timeline

_TOLERANCE: Final = 1e-6
DECISIONS: Final[Mapping[str, Callable[[Json], Json]]] = {
    "provisioning": decide_provisioning,
    "disruption": decide_disruption,
    "claimstatus": decide_claim_status,
    "static": decide_static,
    "timeline": decide_timeline,
}


def decide_karpenter(case: Json) -> Json:
    """Return Fairlead's decision about a case of Karpenter, in the form of the recordings.

    Raises ValueError or KeyError if the case is malformed.
    """
    return DECISIONS[case["kind"]](case)


def is_karpenter_case(case: Json) -> bool:
    """Return whether `case` is a case of Karpenter: it has instance types and a known kind."""
    return "instanceTypes" in case and case.get("kind") in DECISIONS


def compare_karpenter(line: Json) -> Mismatch | None:
    """Replay the case of `line`; return the first mismatch, or None if the decisions agree."""
    found = decide_karpenter(line["case"])
    mismatch = _mismatch(line["expect"], found)
    if mismatch is None or line.get("stable", True):
        return mismatch
    alternatives = line.get("alternatives", ())
    if any(_mismatch(one, found) is None for one in alternatives):
        return None
    return mismatch


def _mismatch(expected: Json, found: Json) -> Mismatch | None:
    normal = _ordered(expected)
    return first_mismatch(normal, _with_prices_of(normal, _ordered(found)))


def _ordered(value: Any) -> Any:
    """Return `value` with its lists of new and replacement NodeClaims sorted by their pods."""
    if isinstance(value, dict):
        ordered = {key: _ordered(item) for key, item in value.items()}
        for key in ("newNodeClaims", "replacements"):
            if key in ordered:
                ordered[key] = sorted(ordered[key], key=_pods)
        return ordered
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value


def _pods(claim: Json) -> list[str]:
    return sorted(claim.get("pods") or ())


def _with_prices_of(expected: Any, found: Any) -> Any:
    """Return `found`, with its floats adjusted to `expected`.

    A float that nearly equals the number at the same place in `expected` becomes that number.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        return {key: _with_prices_of(expected.get(key), item) for key, item in found.items()}
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [_with_prices_of(a, b) for a, b in zip(expected, found, strict=True)]
    if isinstance(expected, int | float) and isinstance(found, float):
        scale = max(1.0, abs(expected))
        return expected if abs(expected - found) <= _TOLERANCE * scale else found
    return found
