"""The conditions of `--fail-on`; if any of them is true, a what-if exits with status 3.

    condition  = pods | count | workload-below=SHARE | flag
    flag       = undrained | pdb-breached | pdb-blocks-drains | replacements-refused
               | data-deleted | loop
    pods       = field operator value           displaced pods that match, such as priority>=1000
               | list:field operator value      pods of a list, such as pending:priority>=1000
    field      = priority | namespace | name | labels.KEY
    count      = list operator number           such as pending>0
    list       = pending | gone | not-created | down | preempted | evicted | moved | displaced
               | waited | errors
    operator   = == | = | != | >= | <= | > | <  (namespace, name, labels: only ==, = and !=)
    SHARE      = a percentage of the wanted pods, such as 80%, or a number of pods; the condition
                 is true if the ready pods of a workload were below SHARE at some time
                 (`FailOnWorkload` has the exceptions)

In `list:field`, every list except `down` and `errors` is allowed.

A namespace, name or label value must match completely; `*` matches any characters, and `?` matches
one character. A missing label satisfies `!=` but not `=`. `pdb-blocks-drains` is true if the change
creates or edits a budget that then never allows the eviction of a ready pod. `replacements-refused`
is true if the API server would refuse every new pod of a workload, including replacements.
`data-deleted` is true if PersistentVolumeClaims are deleted and their volumes are not retained.
`loop` is true if any pods are displaced repeatedly.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from fairlead.api.text.integer import parse_int64
from fairlead.whatif.input.error import InputError, known_names
from fairlead.whatif.outcome.budget import BudgetResult
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.run_outcome import PodEnd

if TYPE_CHECKING:
    from fairlead.whatif.outcome.comparison.peak_shortage import Level

SOURCE: Final = "--fail-on"
LOOP: Final = "loop"
DISPLACED: Final = "displaced"
WAITED: Final = "waited"


def _undrained(effect: Effect) -> list[str]:
    """Return the pods that a drain has not removed, and the nodes that were not drained."""
    pods = [f"{one.pod.key} on {one.pod.node}" for one in effect.changed.undrained]
    named = {one.pod.node for one in effect.changed.undrained}
    drains = [one.node for one in effect.changed.drains if one.back_at is None]
    refused = [one.node for one in effect.drain.refused]
    return [*pods, *(f"node {node}" for node in (*drains, *refused) if node not in named)]


def _not_created(effect: Effect) -> list[str]:
    """Return a text for each pod that a workload wants and has not created.

    If the pod should replace a displaced pod, the text is the key of the displaced pod. Otherwise
    the text consists of the workload and a number.
    """
    displaced = [one.pod.key for one in effect.difference.not_created]
    missing = [
        f"{one.workload} (missing pod {number:,} of {one.missing:,})"
        for one in effect.workloads
        for number in range(1, one.missing + 1)
    ]
    return [*displaced, *missing]


_CONDITION: Final = re.compile(
    r"\s*(?:([a-z-]+):)?([A-Za-z0-9_./-]+)\s*(==|!=|>=|<=|=|>|<)\s*(.*?)\s*"
)
_ORDERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_TEXT_FIELDS: Final = ("namespace", "name")
_LABEL: Final = "labels."
_BELOW: Final = "workload-below"
_LISTS: Final[dict[str, Callable[[Effect], list[str]]]] = {
    "pending": lambda effect: [pod.key for pod in effect.difference.pending],
    "gone": lambda effect: [pod.key for pod in effect.difference.gone],
    "not-created": _not_created,
    "down": lambda effect: [one.pod for one in effect.lost],
    "preempted": lambda effect: [one.pod.key for one in effect.difference.preempted],
    "evicted": lambda effect: [one.pod.key for one in effect.difference.evicted],
    "moved": lambda effect: [one.pod.key for one in effect.difference.moved],
    "displaced": lambda effect: [pod.key for pod in effect.difference.displaced],
    WAITED: lambda effect: [one.pod.key for one in effect.waited],
    "errors": lambda effect: [f"{one.subject}: {one.message}" for one in effect.lasting_errors],
}
_PODS: Final[dict[str, Callable[[Effect], Iterable[PodEnd]]]] = {
    "pending": lambda effect: effect.difference.pending,
    "gone": lambda effect: effect.difference.gone,
    "not-created": lambda effect: (one.pod for one in effect.difference.not_created),
    "preempted": lambda effect: (one.pod for one in effect.difference.preempted),
    "evicted": lambda effect: (one.pod for one in effect.difference.evicted),
    "moved": lambda effect: (one.pod for one in effect.difference.moved),
    DISPLACED: lambda effect: effect.difference.displaced,
    WAITED: lambda effect: (one.pod for one in effect.waited),
}
_FLAGS: Final[dict[str, Callable[[Effect], list[str]]]] = {
    "undrained": _undrained,
    "pdb-breached": lambda effect: [
        one.pdb for one in effect.budgets if one.state is BudgetResult.BREACHED
    ],
    "pdb-blocks-drains": lambda effect: [one.pdb for one in effect.budgets if one.blocks_drains],
    "replacements-refused": lambda effect: [
        f"{one.workload}: {one.message}" for one in effect.refused_replacements
    ],
    "data-deleted": lambda effect: [
        one.claim for one in effect.deleted_claims if not one.keeps_data
    ],
    LOOP: lambda effect: [one.message for one in effect.loops],
}


class FailCondition(Protocol):
    """A condition of --fail-on, which is true or false for the effect of a change."""

    @property
    def text(self) -> str:
        """The condition as the user wrote it."""
        ...

    def evidence(self, effect: Effect) -> list[str]:
        """Return the reasons why the condition is true for `effect`; [] if it is false."""
        ...


class ConditionResult(Struct, frozen=True):
    """A condition and its `evidence`: the reasons why it is true, or () if it is false."""

    text: str
    evidence: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the condition is true, so that the what-if fails."""
        return bool(self.evidence)


def check(condition: FailCondition, effect: Effect) -> ConditionResult:
    """Return `condition` with its evidence in `effect`."""
    return ConditionResult(condition.text, tuple(condition.evidence(effect)))


class _PodFields(Protocol):
    """The fields of a pod that a condition can compare."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def labels(self) -> Mapping[str, str]: ...


class FailOn(Struct, frozen=True):
    """A condition `among:field operator value`, true if a pod of the list `among` matches."""

    text: str
    field: str
    operator: str
    value: str
    among: str = DISPLACED

    def evidence(self, effect: Effect) -> list[str]:
        """Return the keys of the pods for which the condition is true."""
        found = [pod.key for pod in _PODS[self.among](effect) if self.matches(pod)]
        return list(dict.fromkeys(found))

    def matches(self, pod: _PodFields) -> bool:
        """Return whether `pod` matches the condition."""
        if self.field == "priority":
            return _ORDERS[self.operator](pod.priority, int(self.value))
        equal = self._equals(pod)
        return not equal if self.operator == "!=" else equal

    def _equals(self, pod: _PodFields) -> bool:
        if self.field.startswith(_LABEL):
            label = pod.labels.get(self.field.removeprefix(_LABEL))
            return label is not None and fnmatchcase(label, self.value)
        return fnmatchcase(pod.namespace if self.field == "namespace" else pod.name, self.value)


class FailOnCount(Struct, frozen=True):
    """A condition on the number of pods in the list `name`; each pod counts once."""

    text: str
    name: str
    operator: str
    number: int

    def evidence(self, effect: Effect) -> list[str]:
        """Return the counted pods if the condition is true, else [].

        A condition such as `pending==0` can be true although no pods are counted. The result then
        contains only a sentence such as "no pods are pending".
        """
        pods = list(dict.fromkeys(_LISTS[self.name](effect)))
        if not _ORDERS[self.operator](len(pods), self.number):
            return []
        return pods or [f"the list {self.name} is empty"]


class FailOnFlag(Struct, frozen=True):
    """A condition that consists only of its name, such as `undrained`."""

    text: str

    def evidence(self, effect: Effect) -> list[str]:
        """Return the objects that make the condition true, such as pods; [] if it is false."""
        return _FLAGS[self.text](effect)


class FailOnWorkload(Struct, frozen=True):
    """The condition that a workload had fewer ready pods than `amount` at some time.

    If `is_percent` is set, `amount` is a percentage of the wanted pods. Otherwise, it is a number
    of pods. The function `peak_shortages` finds workloads that lack pods at the peak of a load. Any
    other workload is ignored in these cases:

    - All its pods have negative priorities.
    - It had ready pods before the change, but fewer than `amount`.
    - It had ready pods before the change, and wants fewer pods than `amount`.
    - It never had fewer ready pods than before the change, and all wanted pods are ready at the
      end.
    """

    text: str
    amount: int
    is_percent: bool

    def evidence(self, effect: Effect) -> list[str]:
        """Return the workloads below `amount`, with their lowest numbers of ready pods."""
        # Imported here, because few what-ifs have this condition.
        from fairlead.whatif.outcome.comparison.peak_shortage import (  # noqa: PLC0415
            Level,
            peak_shortages,
        )

        found = {
            one.workload: Level(one.readiness.lowest, one.readiness.wanted)
            for one in effect.workloads
            if self._is_below(one)
        }
        for workload, level in peak_shortages(effect, self._is_short):
            found.setdefault(workload, level)
        return [f"{ref} ({one.ready:,} of {one.wanted:,} ready)" for ref, one in found.items()]

    def _is_short(self, level: Level) -> bool:
        """Return whether `level` has fewer ready pods than `amount`, and wants at least `amount`.

        If `is_percent` is set, `amount` is a percentage of the wanted pods.
        """
        needed = self.amount * level.wanted if self.is_percent else 100 * self.amount
        return 100 * level.ready < needed <= 100 * level.wanted

    def _is_below(self, one: WorkloadEffect) -> bool:
        ready = one.readiness
        if one.has_negative_priority:
            return False
        needed = self.amount * ready.wanted if self.is_percent else 100 * self.amount
        had_enough = 100 * min(ready.before, ready.wanted) >= needed
        is_worse = ready.lowest < ready.before or ready.at_end < ready.wanted
        return 100 * ready.lowest < needed and (had_enough or ready.before == 0) and is_worse


def parse_fail_on(text: str) -> FailCondition:
    """Return the condition in `text`. Raises InputError."""
    if text.strip() in _FLAGS:
        return FailOnFlag(text.strip())
    matched = _CONDITION.fullmatch(text)
    if matched is None:
        problem = (
            f"{text!r} is not FIELD OPERATOR VALUE, such as priority>=1000 or pending>0, "
            f"nor one of {', '.join(_FLAGS)}"
        )
        raise InputError(SOURCE, problem)
    among, name, sign, value = matched.groups()
    if among is None and name in _LISTS:
        number = parse_int64(value)
        if number is None:
            raise InputError(SOURCE, f"{value!r} is not an integer", field=name)
        return FailOnCount(text, name, sign, number)
    if name in _FLAGS:
        raise InputError(SOURCE, f"{text!r}: {name} takes no operator and no list")
    if among is None and name == _BELOW:
        return _below(text, sign, value)
    if among is not None and among not in _PODS:
        raise InputError(SOURCE, f"unknown list {among!r}; {known_names(among, tuple(_PODS))}")
    condition = FailOn(text, name, sign, value.strip("'\""), among or DISPLACED)
    _refuse(condition, has_list=among is not None)
    return condition


def parse_simulation_fail_on(text: str) -> FailOn | None:
    """Return the condition in `text` for a single run; None for the condition `loop`.

    Raises InputError for a condition that compares two runs.
    """
    condition = parse_fail_on(text)
    if condition.text == LOOP:
        return None
    if not isinstance(condition, FailOn) or condition.among != DISPLACED:
        allowed = f"a simulation allows {LOOP} and conditions on pods, such as priority>=1000"
        raise InputError(SOURCE, f"{text} needs a what-if; {allowed}")
    return condition


def _below(text: str, sign: str, value: str) -> FailOnWorkload:
    amount = parse_int64(value.removesuffix("%"))
    is_percent = value.endswith("%")
    if sign not in ("=", "=="):
        raise InputError(SOURCE, f"{sign} is not allowed; use =, as in {_BELOW}=80%", field=_BELOW)
    if amount is None or amount < 0 or (is_percent and amount > 100):
        raise InputError(SOURCE, f"{value!r} is not a percentage or a number of pods", field=_BELOW)
    return FailOnWorkload(text, amount, is_percent)


def _refuse(condition: FailOn, *, has_list: bool) -> None:
    """Raise InputError for an invalid combination of field, operator and value.

    `has_list` is set if the user wrote `LIST:` before the field. Then the field must be a field of
    pods.
    """
    name, value = condition.field, condition.value
    if name == "priority":
        if parse_int64(value) is None:
            raise InputError(SOURCE, f"{value!r} is not an integer", field=name)
        return
    if name not in _TEXT_FIELDS and not (name.startswith(_LABEL) and name != _LABEL):
        of_pods = ("priority", *_TEXT_FIELDS, "labels.KEY")
        fields = of_pods if has_list else (*of_pods, *_LISTS, *_FLAGS, _BELOW)
        known = known_names(name, fields)
        raise InputError(SOURCE, f"unknown field {name!r}; {known}")
    if condition.operator not in ("=", "==", "!="):
        raise InputError(SOURCE, f"{condition.operator} compares numbers; use = or !=", field=name)
    if not value:
        raise InputError(SOURCE, "a value is missing", field=name)
