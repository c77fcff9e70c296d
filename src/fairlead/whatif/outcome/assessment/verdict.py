"""Verdict: the result of a what-if in one sentence, from an ordered table of outcomes.

Each row of the table that applies is a finding; the first is the verdict. Rows are ordered by
severity. Loops that never end come first, then drains that are refused or not completed, deleted
data, and workloads without any ready pod. Then come other damage that remains at the end, temporary
damage, and harmless effects. Displaced and pending pods with a negative priority come last: they
exist to give way to other pods.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.api.text.count import counted
from fairlead.whatif.outcome.assessment.sentence.displaced_pod import (
    displaced_sentence,
    negative_priority_displaced_sentence,
)
from fairlead.whatif.outcome.assessment.sentence.drain import refused_sentence, undrained_sentence
from fairlead.whatif.outcome.assessment.sentence.error import (
    error_sentence,
    replacements_refused_sentence,
)
from fairlead.whatif.outcome.assessment.sentence.loop import loop_sentence, repeated_sentence
from fairlead.whatif.outcome.assessment.sentence.loss import (
    claims_deleted_sentence,
    data_deleted_sentence,
    down_sentence,
    gone_sentence,
    not_created_sentence,
)
from fairlead.whatif.outcome.assessment.sentence.new_pod import (
    moved_sentence,
    repacked_sentence,
    resized_sentence,
    started_sentence,
    updated_sentence,
)
from fairlead.whatif.outcome.assessment.sentence.outage import interrupted_sentence
from fairlead.whatif.outcome.assessment.sentence.pending_pod import (
    negative_priority_pending_sentence,
    pending_sentence,
)
from fairlead.whatif.outcome.assessment.sentence.pod_autoscaler import (
    limited_sentence,
    rescaled_sentence,
    scaled_sentence,
    shortage_sentence,
)
from fairlead.whatif.outcome.assessment.sentence.removed_pod import (
    completed_sentence,
    removed_sentence,
)
from fairlead.whatif.outcome.assessment.sentence.unfinished import unfinished_sentence
from fairlead.whatif.outcome.assessment.sentence.workload import (
    breached_sentence,
    briefly_unavailable_sentence,
    budget_changed_sentence,
    incomplete_gang_sentence,
    unavailable_sentence,
)
from fairlead.whatif.outcome.comparison.effect import Effect


class OutcomeKind(StrEnum):
    """The kinds of outcome, the most severe first, as in `_TABLE`.

    Only single runs have the kinds NONE_PENDING and GANGS (`run_verdict`).
    """

    LOOP = "loop"
    REFUSED = "refused"
    UNDRAINED = "undrained"
    DATA_DELETED = "data_deleted"
    UNAVAILABLE = "unavailable"
    PENDING = "pending"
    ERROR = "error"
    GONE = "gone"
    NOT_CREATED = "not_created"
    DOWN = "down"
    UNFINISHED = "unfinished"
    REPLACEMENTS_REFUSED = "replacements_refused"
    BREACHED = "breached"
    BRIEFLY_UNAVAILABLE = "briefly_unavailable"
    INCOMPLETE_GANG = "incomplete_gang"
    REPEATED = "repeated"
    RESCALED = "rescaled"
    LIMITED = "limited"
    NONE_PENDING = "none_pending"
    GANGS = "gangs"
    REPACKED = "repacked"
    DISPLACED = "displaced"
    UPDATED = "updated"
    STARTED = "started"
    COMPLETED = "completed"
    REMOVED = "removed"
    MOVED = "moved"
    SCALED = "scaled"
    BUDGET_CHANGED = "budget_changed"
    INTERRUPTED = "interrupted"
    RESIZED = "resized"
    CLAIMS_DELETED = "claims_deleted"
    NEGATIVE_PRIORITY_DISPLACED = "negative_priority_displaced"
    NEGATIVE_PRIORITY_PENDING = "negative_priority_pending"
    UNCHANGED = "unchanged"


_WARNINGS: Final = (
    OutcomeKind.REPLACEMENTS_REFUSED,
    OutcomeKind.BREACHED,
    OutcomeKind.BRIEFLY_UNAVAILABLE,
    OutcomeKind.INCOMPLETE_GANG,
    OutcomeKind.REPEATED,
    OutcomeKind.RESCALED,
    OutcomeKind.LIMITED,
    OutcomeKind.NEGATIVE_PRIORITY_PENDING,
)


class Severity(StrEnum):
    """How harmful an outcome is to users and workloads: bad, warning or good."""

    BAD = "bad"
    WARNING = "warning"
    GOOD = "good"


class Finding(Struct, frozen=True):
    """An outcome that occurs: its kind, and a sentence that states it."""

    kind: OutcomeKind
    sentence: str

    @property
    def severity(self) -> Severity:
        """The severity of this kind of finding: bad, warning or good."""
        rank = list(OutcomeKind).index(self.kind)
        if rank <= list(OutcomeKind).index(OutcomeKind.UNFINISHED):
            return Severity.BAD
        return Severity.WARNING if self.kind in _WARNINGS else Severity.GOOD


class Verdict(Struct, frozen=True):
    """All outcomes that occur, the most severe first; UNCHANGED if no outcome occurs.

    NEGATIVE_PRIORITY_PENDING is always last, although some outcomes before it are harmless. The
    sentence of the first outcome ends with `assumption`, a sentence about what is assumed, or "".
    """

    findings: tuple[Finding, ...]
    assumption: str = ""

    @property
    def first(self) -> Finding:
        """The most severe finding, which is the verdict."""
        return self.findings[0]

    @property
    def without_assumption(self) -> Verdict:
        """This verdict, without the `assumption` in its first sentence."""
        first, *others = self.findings
        sentence = first.sentence.removesuffix(f" {self.assumption}")
        return Verdict((Finding(first.kind, sentence), *others))


def verdict_of(effect: Effect) -> Verdict:
    """Return the verdict with all outcomes that `effect` has."""
    found = [
        Finding(kind, sentence) for kind, row in _TABLE if (sentence := row(effect)) is not None
    ]
    return Verdict(tuple(found or [Finding(OutcomeKind.UNCHANGED, _unchanged(effect))]))


def _unchanged(effect: Effect) -> str:
    """Return text that says that nothing changes, and what stays the same in both runs.

    If a part of the change is not simulated, the text names this part.
    """
    but = f", but {effect.unsimulated} is not simulated" if effect.unsimulated else ""
    text = f"Nothing changes for any pod{but}."
    if pending := len(effect.changed.pending):
        text += f" {counted(pending, 'pod')} {'stays' if pending == 1 else 'stay'} pending."
    if shortages := effect.shortages_of_both:
        text += f" In both runs, {shortage_sentence(shortages)}"
    before, after = effect.without.autoscaling, effect.changed.autoscaling
    if before is None or after is None or not after.transitions:
        return text
    # Imported only if it is needed.
    from fairlead.whatif.outcome.autoscaling.node_group import transition_words  # noqa: PLC0415

    words = transition_words(after.transitions)
    if words != transition_words(before.transitions):
        return text
    return f"{text} In both runs, {after.autoscaler} {words}."


_Row = Callable[[Effect], str | None]

_TABLE: Final[tuple[tuple[OutcomeKind, _Row], ...]] = (
    # Loops that never end.
    (OutcomeKind.LOOP, loop_sentence),
    # Drains that are refused or not completed.
    (OutcomeKind.REFUSED, refused_sentence),
    (OutcomeKind.UNDRAINED, undrained_sentence),
    # Damage that nothing can undo.
    (OutcomeKind.DATA_DELETED, data_deleted_sentence),
    # Users are not served: until the end of the run, or for so long that they notice.
    (OutcomeKind.UNAVAILABLE, unavailable_sentence),
    # Damage that remains: pods that are pending, not even created, lost, or down.
    (OutcomeKind.PENDING, pending_sentence),
    (OutcomeKind.ERROR, error_sentence),
    (OutcomeKind.GONE, gone_sentence),
    (OutcomeKind.NOT_CREATED, not_created_sentence),
    (OutcomeKind.DOWN, down_sentence),
    # Problems that may disappear after the end of the run.
    (OutcomeKind.UNFINISHED, unfinished_sentence),
    # Damage that begins when the next pod ends.
    (OutcomeKind.REPLACEMENTS_REFUSED, replacements_refused_sentence),
    # Temporary damage.
    (OutcomeKind.BREACHED, breached_sentence),
    (OutcomeKind.BRIEFLY_UNAVAILABLE, briefly_unavailable_sentence),
    (OutcomeKind.INCOMPLETE_GANG, incomplete_gang_sentence),
    (OutcomeKind.REPEATED, repeated_sentence),
    # Requests that an autoscaler overrides.
    (OutcomeKind.RESCALED, rescaled_sentence),
    (OutcomeKind.LIMITED, limited_sentence),
    # Harmless effects.
    (OutcomeKind.REPACKED, repacked_sentence),
    (OutcomeKind.DISPLACED, displaced_sentence),
    (OutcomeKind.UPDATED, updated_sentence),
    (OutcomeKind.STARTED, started_sentence),
    (OutcomeKind.COMPLETED, completed_sentence),
    (OutcomeKind.REMOVED, removed_sentence),
    (OutcomeKind.MOVED, moved_sentence),
    (OutcomeKind.SCALED, scaled_sentence),
    (OutcomeKind.BUDGET_CHANGED, budget_changed_sentence),
    (OutcomeKind.INTERRUPTED, interrupted_sentence),
    (OutcomeKind.RESIZED, resized_sentence),
    (OutcomeKind.CLAIMS_DELETED, claims_deleted_sentence),
    # Pods that exist to give way, so that they are not the main result of a change.
    (OutcomeKind.NEGATIVE_PRIORITY_DISPLACED, negative_priority_displaced_sentence),
    (OutcomeKind.NEGATIVE_PRIORITY_PENDING, negative_priority_pending_sentence),
)
