"""Explains PriorityClasses: which pods use them, and which pods may preempt which.

A pod may preempt bound pods of a lower priority if its preemptionPolicy is not Never. Preemption
avoids violations of PodDisruptionBudgets. If there is no other way, preemption violates budgets.

Admission sets the priority of a pod when the pod is created. So the priorities of existing pods and
their class can differ: the class may have been deleted and created again with a different value.

upstream: plugin/pkg/admission/priority/admission.go: admitPod,
default_preemption.go: PodEligibleToPreemptOthers, filterPodsWithPDBViolation
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.codec import decode_as
from fairlead.api.objects import ObjectMeta, PriorityClass
from fairlead.api.pods.requests import CPU, MEMORY, pod_requests
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import PRIORITY_CLASS
from fairlead.apiserver.validation.scheduling import PREEMPT_LOWER_PRIORITY, SYSTEM_CLASSES
from fairlead.engine.state.pod_info import PodInfo
from fairlead.engine.workloads.disruption.budget_room import BudgetRoom
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.result.table import amount_cell
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.whatif.snapshot.validation.workload import WORKLOADS

NO_CLASS: Final = "no class"
_NEVER: Final = "Never"
_WORKLOAD_COLUMNS: Final = (
    ResultColumn("workload", "workload", NAME),
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("pending", "pending", NUMBER, rank=1),
    ResultColumn("requests", "requests"),
)
_VICTIM_COLUMNS: Final = (
    ResultColumn("priority_class", "class", NAME),
    ResultColumn("value", "value", NUMBER),
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("with_budget", "with a budget", NUMBER),
    ResultColumn("against_budget", "budget allows none", NUMBER),
    ResultColumn("requests", "requests", rank=1),
)
_PREEMPTOR_COLUMNS: Final = (
    ResultColumn("priority_class", "class", NAME),
    ResultColumn("value", "value", NUMBER),
    ResultColumn("policy", "preemptionPolicy"),
    ResultColumn("pods", "its pods", NUMBER),
    ResultColumn("may_preempt", "pods it may preempt", NUMBER),
)
_CLASS_COLUMNS: Final = (
    ResultColumn("priority_class", "class", NAME),
    ResultColumn("value", "value", NUMBER),
    ResultColumn("global_default", "default", rank=2),
    ResultColumn("policy", "preemptionPolicy", rank=1),
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("requests", "requests", rank=3),
    ResultColumn("may_preempt", "pods it may preempt", NUMBER),
    ResultColumn("may_be_preempted", "its pods that may be preempted", NUMBER),
)
_LIMITS: Final = (
    "A pod preempts only if it fits on no node, and only as many pods of one node as it needs."
)


class UsedClass(Struct, frozen=True, kw_only=True):
    """A PriorityClass with its unfinished pods."""

    name: str  # NO_CLASS for the pods without a class
    value: int  # if `is_known` is False, the priority of the newest of `pods`
    pods: tuple[PodInfo, ...]
    is_default: bool = False
    policy: str = PREEMPT_LOWER_PRIORITY
    preempts: bool = True  # whether `policy` lets new pods of the class preempt other pods
    is_known: bool = True  # False for a class that pods name, but that the dump lacks


class _Victims(Struct, frozen=True):
    """Pods that may be preempted.

    `with_budget` are the pods that a disruption budget covers. `against_budget` are the pods in
    `with_budget` whose budget allows no disruption.
    """

    pods: Sequence[PodInfo]
    with_budget: list[PodInfo]
    against_budget: list[PodInfo]


class PriorityClasses:
    """The PriorityClasses of a cluster, highest value first, and the pods that they concern.

    The system classes exist in every cluster, even if the dump lacks them.
    """

    def __init__(
        self, model: ClusterModel, snapshot: Snapshot, *, honors_never: bool = True
    ) -> None:
        """Find the classes of `snapshot`, which `model` has loaded.

        `honors_never` is False for old schedulers, which ignore preemptionPolicy Never.
        """
        self.source = snapshot.source
        self._model, self._inventory = model, snapshot.inventory()
        self._budgets = model.cluster.budgets()
        room = BudgetRoom(model.objects, model.now)
        self._allowed = {limit.key: limit.now for limit in room.limits()}
        self._on_nodes = [
            pod for pod in model.pods() if model.cluster.node_of(pod) and not pod.terminating
        ]
        self.classes = self._find(honors_never=honors_never)

    def _find(self, *, honors_never: bool) -> list[UsedClass]:
        pods: dict[str, list[PodInfo]] = defaultdict(list)
        for pod in self._model.pods():
            pods[pod.pod.spec.priority_class_name].append(pod)
        dumped = self._inventory.of_kind(PRIORITY_CLASS)
        known = {one.ref.name: one.as_view(PriorityClass) for one in dumped}
        system = {name: decode_as(PriorityClass, one) for name, one in SYSTEM_CLASSES.items()}
        absent = {
            name: _class_of(name, own)
            for name, own in pods.items()
            if name and name not in known and name not in system
        }
        found = [
            UsedClass(
                name=name,
                value=one.value,
                is_default=one.global_default,
                policy=one.preemption_policy or PREEMPT_LOWER_PRIORITY,
                preempts=not (honors_never and one.preemption_policy == _NEVER),
                pods=tuple(pods.get(name, ())),
                is_known=name not in absent,
            )
            for name, one in {**absent, **system, **known}.items()
        ]
        if without := pods.get(""):
            found.append(UsedClass(name=NO_CLASS, value=0, pods=tuple(without)))
        return sorted(found, key=lambda one: (-one.value, one.name))

    def get(self, name: str) -> UsedClass | None:
        """Return the class `name`; None if it does not exist."""
        return next((one for one in self.classes if one.name == name != NO_CLASS), None)

    def is_on_node(self, pod: PodInfo) -> bool:
        """Return whether `pod` has a node."""
        return bool(self._model.cluster.node_of(pod))

    def victims(self, one: UsedClass) -> _Victims:
        """Return the pods that a new pod of the class `one` may preempt, as _Victims.

        The result also states which of these pods are covered by disruption budgets.
        """
        return self.protected(self.lower_pods(one))

    def lower_pods(self, one: UsedClass) -> list[PodInfo]:
        """Return the pods that a new pod of the class `one` may preempt."""
        found = self._on_nodes if one.preempts else ()
        return [pod for pod in found if pod.priority < one.value]

    def protected(self, pods: Sequence[PodInfo]) -> _Victims:
        """Return `pods` as _Victims, with lists of the pods that disruption budgets cover."""
        keys = {
            pod.key: [
                budget.key
                for budget in self._budgets.selecting(pod)
                if pod.pod.metadata.name not in budget.status.disrupted_pods
            ]
            for pod in pods
        }
        return _Victims(
            pods,
            [pod for pod in pods if keys[pod.key]],
            [pod for pod in pods if any(self._allowed[key] < 1 for key in keys[pod.key])],
        )

    def victims_of(self, preemptor: UsedClass, victim: UsedClass) -> int:
        """Return how many pods of the class `victim` a new pod of `preemptor` may preempt."""
        pods = (pod for pod in victim.pods if self.is_on_node(pod) and not pod.terminating)
        return sum(pod.priority < preemptor.value for pod in pods) if preemptor.preempts else 0

    def preemptors(self, victim: UsedClass) -> list[tuple[UsedClass, int]]:
        """Return (class, number of pods of `victim` that a new pod of the class may preempt).

        Classes with a higher value than `victim` are always included. Any other class is included
        if the number is not 0: pods of `victim` may have a lower priority than `victim`.
        """
        others = [one for one in self.classes if one is not victim and one.name != NO_CLASS]
        found = [(one, self.victims_of(one, victim)) for one in others]
        return [(one, count) for one, count in found if count or one.value > victim.value]

    def templates(self) -> Iterator[tuple[str, str]]:
        """Yield (class, workload) for each workload that names a class and has no controller."""
        for kind in WORKLOADS:
            for one in self._inventory.of_kind(kind):
                template = one.pod_template if one.controller is None else None
                spec = template.get("spec") if isinstance(template, dict) else None
                name = spec.get("priorityClassName") if isinstance(spec, dict) else None
                if name:
                    yield str(name), one.title

    @property
    def has_dumped(self) -> bool:
        """Whether the dump contains PriorityClasses."""
        return bool(self._inventory.of_kind(PRIORITY_CLASS))


def _class_of(name: str, pods: Iterable[PodInfo]) -> PriorityClass:
    """Return the class `name`, which the dump lacks, with the values of the newest of its pods."""
    newest = max(
        (one.pod for one in pods), key=lambda pod: (pod.metadata.creation_timestamp, pod.key)
    )
    return PriorityClass(
        metadata=ObjectMeta(name=name),
        value=newest.spec.priority or 0,
        preemption_policy=newest.spec.preemption_policy,
    )


def explain_priority_class(classes: PriorityClasses, one: UsedClass) -> TabularAnswer:
    """Return the explanation of the class `one`."""
    victims, preemptors = classes.victims(one), classes.preemptors(one)
    naming = [workload for name, workload in classes.templates() if name == one.name]
    problems = [*_problems(classes, one, naming), *_absent(classes)]
    pending = [pod for pod in one.pods if not classes.is_on_node(pod)]
    return TabularAnswer(
        kind="PriorityClassExplanation",
        source=classes.source,
        verdict=_verdict(one, victims, preemptors),
        findings=(*problems, *_findings(one, pending, victims, preemptors)),
        tables=(
            ResultTable("workloads", "whose pods use it", _WORKLOAD_COLUMNS,
                        _workload_rows(classes, one)),
            ResultTable("may_preempt", "pods on nodes that its pods may preempt", _VICTIM_COLUMNS,
                        _victim_rows(classes, victims)),
            ResultTable("preemptors", "who may preempt its pods", _PREEMPTOR_COLUMNS, [
                {"priority_class": found.name, "value": found.value, "policy": found.policy,
                 "pods": len(found.pods), "may_preempt": count}
                for found, count in preemptors
            ]),
        ),
        facts={
            "priority_class": one.name,
            "value": one.value,
            "global_default": one.is_default,
            "preemption_policy": one.policy,
            "problems": problems,
            "pods": len(one.pods),
            "pending": len(pending),
            "requested": _requested(one.pods),
            "victims": len(victims.pods),
            "victims_with_budget": len(victims.with_budget),
            "victims_against_budget": len(victims.against_budget),
        },
        notes=(_LIMITS,) if victims.pods else (),
    )  # fmt: skip


def explain_priority_classes(classes: PriorityClasses) -> TabularAnswer:
    """Return the explanation of all classes, and of the pods without a class."""
    naming: dict[str, list[str]] = defaultdict(list)
    for name, workload in classes.templates():
        naming[name].append(workload)
    problems = [
        f"{one.name}: {problem}"
        for one in classes.classes
        for problem in _problems(classes, one, naming[one.name])
    ]
    problems += _absent(classes)
    rows = [
        {
            "priority_class": one.name,
            "value": one.value,
            "global_default": one.is_default,
            "policy": one.policy,
            "pods": len(one.pods),
            "requests": _amounts(one.pods),
            "requested": _requested(one.pods),
            "may_preempt": len(classes.lower_pods(one)),
            "may_be_preempted": max(
                (count for _, count in classes.preemptors(one)), default=0
            ),
        }
        for one in classes.classes
    ]  # fmt: skip
    named = [row for row in rows if row["priority_class"] != NO_CLASS]
    active = sum(bool(row["may_preempt"]) for row in named)
    total = sum(int(str(row["may_be_preempted"])) for row in rows)
    return TabularAnswer(
        kind="PriorityClassesExplanation",
        source=classes.source,
        verdict=(
            f"Of {counted(len(named), 'PriorityClass', 'PriorityClasses')}, {active:,} may preempt "
            f"pods now; {counted(total, 'pod')} may be preempted."
        ),
        findings=tuple(problems),
        tables=(ResultTable("classes", "the classes, highest value first", _CLASS_COLUMNS, rows,
                            shown=25),),
        facts={"problems": problems},
        notes=(_LIMITS,) if total else (),
    )  # fmt: skip


def _verdict(one: UsedClass, victims: _Victims, preemptors: Sequence[tuple[UsedClass, int]]) -> str:
    subject = f"Pods of pc/{one.name} ({one.value:,})"
    if not one.preempts:
        may = "preempt no pods, because its preemptionPolicy is Never"
    elif not victims.pods:
        may = "may preempt no pod: no pod on a node has a lower priority"
    else:
        may = f"may preempt {counted(len(victims.pods), 'pod')} of lower priority"
    if not one.pods:
        return f"{subject} {may}. It has no pods."
    own, most = len(one.pods), max((count for _, count in preemptors), default=0)
    pods = f"its {counted(own, 'pod')}" if own == most else f"{most:,} of its {own:,} pods"
    if not most:
        return f"{subject} {may}. No class may preempt its {counted(own, 'pod')}."
    return f"{subject} {may}. Pods of {_names(preemptors)} may preempt {pods}."


def _names(preemptors: Sequence[tuple[UsedClass, int]]) -> str:
    """Return the names of the classes that may preempt pods: the lowest class first."""
    found = [one.name for one, count in reversed(preemptors) if count]
    own = [name for name in found if name not in SYSTEM_CLASSES]
    if own and len(own) < len(found):
        return f"{listed(own)} and of the system classes"
    return listed(own or found)


def _problems(classes: PriorityClasses, one: UsedClass, naming: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each unexpected fact about the PriorityClass `one`.

    `naming` are the workloads whose templates name the class.
    """
    if one.name == NO_CLASS:
        return
    if not one.is_known and classes.has_dumped:
        yield (
            f"The dump has no PriorityClass {one.name}: the API server refuses new pods that name "
            f"it. {one.value:,} is the priority of its newest pod."
        )
    elif not one.is_known:
        yield f"The dump has no PriorityClasses; {one.value:,} is the priority of its newest pod."
    is_system = one.name in SYSTEM_CLASSES
    if not one.pods and naming:
        yield f"No pod uses it now, but {_names_it(naming)}."
    elif not (one.pods or is_system or one.is_default):
        yield "No pod and no workload uses it."
    same = [
        other.name
        for other in classes.classes
        if other.value == one.value and other is not one and other.name != NO_CLASS
    ]
    if same and not is_system:
        verb = "has" if len(same) == 1 else "have"
        yield (
            f"{listed(same)} {verb} the same value: pods with this priority cannot preempt one "
            "another."
        )
    priorities = Counter(pod.priority for pod in one.pods if pod.priority != one.value)
    for priority, count in sorted(priorities.items()):
        have = counted(count, "of its pods has", "of its pods have")
        yield (
            f"{have} priority {priority:,} instead of {one.value:,}: existing pods keep the "
            "priority that their class had when they were created."
        )
    policies = Counter(pod.pod.spec.preemption_policy or PREEMPT_LOWER_PRIORITY for pod in one.pods)
    for policy, count in sorted(policies.items()):
        if policy != one.policy:
            have = counted(count, "of its pods has", "of its pods have")
            yield f"{have} the preemptionPolicy {policy} instead of {one.policy}."


def _names_it(naming: Sequence[str]) -> str:
    return f"{listed(naming)} {'names' if len(naming) == 1 else 'name'} it"


def _absent(classes: PriorityClasses) -> Iterator[str]:
    """Yield a sentence for each class that workloads name and that does not exist."""
    naming: dict[str, list[str]] = defaultdict(list)
    for name, workload in classes.templates() if classes.has_dumped else ():
        found = classes.get(name)
        if found is None or not found.is_known:
            naming[name].append(workload)
    for name, workloads in sorted(naming.items()):
        verb, their = ("names", "its") if len(workloads) == 1 else ("name", "their")
        yield (
            f"{listed(workloads)} {verb} PriorityClass {name}, which does not exist: the API "
            f"server refuses {their} new pods."
        )


def _findings(
    one: UsedClass,
    pending: Sequence[PodInfo],
    victims: _Victims,
    preemptors: Sequence[tuple[UsedClass, int]],
) -> Iterator[str]:
    if one.is_default:
        yield "It is the global default: new pods that name no class get it."
    if one.pods:
        use = counted(len(one.pods), "pod uses", "pods use")
        wait = f"; {counted(len(pending), 'of them is', 'of them are')} pending" if pending else ""
        yield f"{use} it, with requests of {_amounts(one.pods)}{wait}."
    if victims.with_budget:
        protect = counted(
            len(victims.with_budget), "pod of lower priority has", "pods of lower priority have"
        )
        against = len(victims.against_budget)
        yield (
            f"{protect} a disruption budget, so preemption avoids them if it can; for "
            f"{f'{against:,}' if against else 'none'} of them, a budget allows no disruption now."
        )
    elif victims.pods:
        yield "No disruption budget protects the pods of lower priority."
    higher = [found for found, _ in preemptors if found.value > one.value]
    never = sum(not found.preempts for found in higher)
    if not higher:
        yield "No class has a higher value."
    elif never:
        classes = counted(len(higher), "class has", "classes have")
        yield f"{classes} a higher value; {never:,} of them with the preemptionPolicy Never."


def _workload_rows(classes: PriorityClasses, one: UsedClass) -> list[Row]:
    found: dict[str, list[PodInfo]] = defaultdict(list)
    for pod in one.pods:
        found[str(workload_of(pod.pod))].append(pod)
    return [
        {
            "workload": workload,
            "pods": len(pods),
            "pending": sum(not classes.is_on_node(pod) for pod in pods),
            "requests": _amounts(pods),
            "requested": _requested(pods),
        }
        for workload, pods in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def _victim_rows(classes: PriorityClasses, victims: _Victims) -> list[Row]:
    """Return a row for each class with victims, lowest value first."""
    rows: list[Row] = []
    values: Mapping[str, int] = {one.name: one.value for one in classes.classes}
    found: dict[str, list[PodInfo]] = defaultdict(list)
    for pod in victims.pods:
        found[pod.pod.spec.priority_class_name or NO_CLASS].append(pod)
    for name, pods in sorted(found.items(), key=lambda item: (values[item[0]], item[0])):
        own = classes.protected(pods)
        rows.append(
            {
                "priority_class": name,
                "value": values[name],
                "pods": len(pods),
                "with_budget": len(own.with_budget),
                "against_budget": len(own.against_budget),
                "requests": _amounts(pods),
                "requested": _requested(pods),
            }
        )
    return rows


def _requested(pods: Iterable[PodInfo]) -> dict[str, int]:
    """Return the sum of the requests: cpu in millicores, other resources in units."""
    total: Counter[str] = Counter()
    for pod in pods:
        total.update(pod_requests(pod.pod, existing=True))
    order = (CPU, MEMORY, *sorted(total.keys() - {CPU, MEMORY}))
    return {name: total[name] for name in order if total[name]}


def _amounts(pods: Iterable[PodInfo]) -> str:
    """Return the sum of the requests as a text such as `2,000.5 cpu, 625Gi memory`."""
    found = _requested(pods).items()
    return ", ".join(f"{amount_cell(name, amount)} {name}" for name, amount in found) or "nothing"
