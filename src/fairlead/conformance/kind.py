"""Kind: one sort of recorded case files, and how they are replayed and compared.

To add one, write a function from the input to what we decide and put it into KINDS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.conformance.comparison import Difference, first_difference
from fairlead.conformance.nodelifecycle import compare_node_timeline, decide_node_timeline
from fairlead.conformance.scheduling import decide
from fairlead.conformance.sequence import decide_sequence
from fairlead.conformance.timelines import compare_timeline, decide_timeline
from fairlead.conformance.volumes import decide_volumes

Json = dict[str, Any]
Compare = Callable[[Json, Json], Difference | None]


@dataclass(frozen=True, slots=True)
class Kind:
    """A line of a file is `{subject: input, "expect": …}`.

    `compare(expect, found)` says where both differ, None where they agree.
    """

    subject: str
    decide: Callable[[Json], Json]
    compare: Compare = first_difference


def _decide_scheduling(case: Json) -> Json:
    return decide_sequence(case) if "steps" in case else decide(case)


KINDS: Final[Mapping[str, Kind]] = {
    "scheduling": Kind("case", _decide_scheduling),
    "nodelifecycle": Kind("scenario", decide_node_timeline, compare_node_timeline),
    "timelines": Kind("scenario", decide_timeline, compare_timeline),
    "volumes": Kind("case", decide_volumes),
}
