"""The kinds of recorded Karpenter cases, and the replay of one case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.conformance.comparison import Mismatch
from fairlead.conformance.karpenter.agreement import compare_line
from fairlead.conformance.karpenter.claim_status import decide_claim_status, decide_static
from fairlead.conformance.karpenter.disruption import decide_disruption
from fairlead.conformance.karpenter.provisioning import decide_provisioning
from fairlead.conformance.karpenter.timeline import decide_timeline

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
    return compare_line(line, decide_karpenter(line["case"]))
