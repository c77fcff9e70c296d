"""Kind: one sort of recorded case files, and how they are replayed and compared.

To add one, write a function from the input to what we decide and put it into KINDS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from fairlead.api.json import Json
from fairlead.conformance.comparison import Difference, Remark, first_difference
from fairlead.conformance.kubebatch.session import compare_with_defaults, compare_with_defects
from fairlead.conformance.nodelifecycle.node_timeline import (
    compare_node_timeline,
    compare_node_timeline_with_defaults,
    decide_node_timeline,
)
from fairlead.conformance.scheduling.pod import decide
from fairlead.conformance.scheduling.sequence import decide_sequence
from fairlead.conformance.scheduling.volumes import decide_volumes, has_storage, has_volumes
from fairlead.conformance.timelines.timeline import compare_timeline, decide_timeline

Compare = Callable[[Json, Json], Difference | None]
Recognize = Callable[[Json], bool]
Finding = Difference | Remark | None


class Kind(Protocol):
    """What a sort of files has; `fields` must be in every line, as objects."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The members without which a line is none of these."""
        ...

    def recognizes(self, line: Json) -> bool:
        """Whether a line with these fields was recorded as this kind, not as another like it."""
        ...

    def name_of(self, line: Json) -> str | None:
        """By which a case is told from others."""
        ...

    def judge(self, line: Json) -> Finding:
        """Where we differ from the recording; None where we agree."""
        ...


@dataclass(frozen=True, slots=True)
class Expecting:
    """A line of a file is `{subject: input, "expect": …}`.

    `compare(expect, found)` says where both differ, None where they agree; `recognize(input)`
    tells the inputs of this kind from those of others with the same subject. A `judgement` of the
    whole line takes the place of deciding and comparing.
    """

    subject: str
    decide: Callable[[Json], Json]
    recognize: Recognize
    compare: Compare = first_difference
    judgement: Callable[[Json], Finding] | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """Input and decision."""
        return self.subject, "expect"

    def recognizes(self, line: Json) -> bool:
        """By the input."""
        return self.recognize(line[self.subject])

    def name_of(self, line: Json) -> str | None:
        """The input has it."""
        name: str | None = line[self.subject].get("name")
        return name

    def judge(self, line: Json) -> Finding:
        """Decide, and compare."""
        if self.judgement is not None:
            return self.judgement(line)
        return self.compare(line["expect"], self.decide(line[self.subject]))


@dataclass(frozen=True, slots=True)
class Sessions:
    """A line is a recorded session of kube-batch with all that was seen in many runs."""

    compare: Callable[[Json], Finding]

    @property
    def fields(self) -> tuple[str, ...]:
        """Input and what was seen."""
        return "scenario", "projections"

    def recognizes(self, line: Json) -> bool:
        """No other kind has projections."""
        return True

    def name_of(self, line: Json) -> str | None:
        """The line has it."""
        return line.get("id")

    def judge(self, line: Json) -> Finding:
        """Run the session, and compare."""
        return self.compare(line)


def _decide_scheduling(case: Json) -> Json:
    return decide_sequence(case) if "steps" in case else decide(case)


def _has_no_storage(case: Json) -> bool:
    return not has_storage(case)


def _has_initial_objects(scenario: Json) -> bool:
    return "initial" in scenario


def _has_nodes(scenario: Json) -> bool:
    return "nodes" in scenario


KINDS: Final[Mapping[str, Kind]] = {
    "scheduling": Expecting("case", _decide_scheduling, _has_no_storage),
    "nodelifecycle": Expecting("scenario", decide_node_timeline, _has_nodes, compare_node_timeline),
    "timelines": Expecting("scenario", decide_timeline, _has_initial_objects, compare_timeline),
    "volumes": Expecting("case", decide_volumes, has_volumes),
    "kubebatch": Sessions(compare_with_defects),
}

# Where Fairlead corrects what was recorded, and what the defaults then make of the recordings.
CORRECTED_KINDS: Final[Mapping[str, Kind]] = {
    "kubebatch": Sessions(compare_with_defaults),
    "nodelifecycle": Expecting(
        "scenario",
        decide_node_timeline,
        _has_nodes,
        judgement=compare_node_timeline_with_defaults,
    ),
}
