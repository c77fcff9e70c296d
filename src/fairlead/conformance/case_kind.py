"""CaseKind: a kind of case files, with functions that replay and compare its cases.

To add a kind, write a function that returns Fairlead's decision for the input of a case. Then add
an entry with this function to KINDS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.conformance.autoscaler.case import (
    compare_autoscaler,
    decide_autoscaler,
    is_autoscaler_case,
)
from fairlead.conformance.comparison import Mismatch, Remark, first_mismatch
from fairlead.conformance.karpenter.decision import (
    compare_karpenter,
    decide_karpenter,
    is_karpenter_case,
)
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

Compare = Callable[[Json, Json], Mismatch | None]
Recognize = Callable[[Json], bool]
Finding = Mismatch | Remark | None


class CaseKind(Protocol):
    """A kind of case files.

    In each line of such a file, the members that `fields` names must be JSON objects.
    """

    @property
    def fields(self) -> tuple[str, ...]:
        """The required members of a line."""
        ...

    def recognizes(self, line: Json) -> bool:
        """Return whether `line`, which has the required fields, is a case of this kind.

        The fields alone do not identify the kind, because some kinds have the same fields.
        """
        ...

    def name_of(self, line: Json) -> str | None:
        """Return the name of the case; None if it has no name."""
        ...

    def judge(self, line: Json) -> Finding:
        """Replay the case; return a mismatch or a remark, or None if the decisions agree."""
        ...


class ExpectationCases(Struct, frozen=True):
    """Lines of the form `{subject: input, "expect": …}`.

    `decide(input)` returns Fairlead's decision. `compare(expect, decision)` returns the first
    mismatch. `recognize(input)` returns whether the line is of this kind; lines of other kinds may
    have the same `subject`. If `judgement` is set, `judge` calls `judgement(line)` and uses neither
    `decide` nor `compare`.
    """

    subject: str
    decide: Callable[[Json], Json]
    recognize: Recognize
    compare: Compare = first_mismatch
    judgement: Callable[[Json], Finding] | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The required fields of a line: the input and the expected decision."""
        return self.subject, "expect"

    def recognizes(self, line: Json) -> bool:
        """Return whether the input in `line` is of this kind."""
        return self.recognize(line[self.subject])

    def name_of(self, line: Json) -> str | None:
        """Return the field `name` of the case's input; None if there is no such field."""
        name: str | None = line[self.subject].get("name")
        return name

    def judge(self, line: Json) -> Finding:
        """Replay the case of `line`; see `CaseKind.judge`."""
        if self.judgement is not None:
            return self.judgement(line)
        return self.compare(line["expect"], self.decide(line[self.subject]))


class SessionCases(Struct, frozen=True):
    """Lines that each contain a kube-batch scenario and the recorded results of many runs."""

    compare: Callable[[Json], Finding]

    @property
    def fields(self) -> tuple[str, ...]:
        """The required fields of a line: the scenario and the projections of its outcomes.

        A projection is a part of an outcome, such as the number of bound pods of each job.
        """
        return "scenario", "projections"

    def recognizes(self, line: Json) -> bool:
        """Return True.

        The caller has checked that `line` has the required fields. One of them is `projections`,
        which no other kind requires.
        """
        return True

    def name_of(self, line: Json) -> str | None:
        """Return the id of the line; None if it has no id."""
        return line.get("id")

    def judge(self, line: Json) -> Finding:
        """Run the session in `line`; see `CaseKind.judge`."""
        return self.compare(line)


def _decide_scheduling(case: Json) -> Json:
    return decide_sequence(case) if "steps" in case else decide(case)


def _is_about_nodes(case: Json) -> bool:
    return is_autoscaler_case(case) or is_karpenter_case(case)


def _has_no_storage(case: Json) -> bool:
    return not has_storage(case) and not _is_about_nodes(case)


def _has_only_volumes(case: Json) -> bool:
    return has_volumes(case) and not _is_about_nodes(case)


def _has_initial_objects(scenario: Json) -> bool:
    return "initial" in scenario


def _has_nodes(scenario: Json) -> bool:
    return "nodes" in scenario


KINDS: Final[Mapping[str, CaseKind]] = {
    "scheduling": ExpectationCases("case", _decide_scheduling, _has_no_storage),
    "nodelifecycle": ExpectationCases(
        "scenario", decide_node_timeline, _has_nodes, compare_node_timeline
    ),
    "timelines": ExpectationCases(
        "scenario", decide_timeline, _has_initial_objects, compare_timeline
    ),
    "volumes": ExpectationCases("case", decide_volumes, _has_only_volumes),
    "kubebatch": SessionCases(compare_with_defects),
    "autoscaler": ExpectationCases(
        "case", decide_autoscaler, is_autoscaler_case, compare_autoscaler
    ),
    "karpenter": ExpectationCases(
        "case", decide_karpenter, is_karpenter_case, judgement=compare_karpenter
    ),
}

# Kinds whose recordings can also be compared with Fairlead's defaults, which correct some defects
# of upstream.
CORRECTED_KINDS: Final[Mapping[str, CaseKind]] = {
    "kubebatch": SessionCases(compare_with_defaults),
    "nodelifecycle": ExpectationCases(
        "scenario",
        decide_node_timeline,
        _has_nodes,
        judgement=compare_node_timeline_with_defaults,
    ),
}
