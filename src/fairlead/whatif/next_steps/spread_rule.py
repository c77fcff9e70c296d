"""SpreadRule: a rule of a workload that keeps the workload's pods off nodes with room.

Such a rule is a topology spread constraint with DoNotSchedule, or a required anti-affinity term.
The scheduler checks these rules only on nodes that have room for the requests of the pod, or that
would have room after a preemption. So each node that a rule rejects has room, or can get it
(upstream: pkg/scheduler/apis/config/v1/default_plugins.go: getDefaultPlugins).

A constraint can block the pods of a failed zone. If nodeTaintsPolicy is Ignore, the default, the
nodes of the failed zone still count while their Node objects exist. If maxSkew is 1, a zone that
already has a pod of the workload then gets no new pod, and further pods stay pending. If
nodeTaintsPolicy is Honor, nodes with an untolerated taint are ignored. Failed nodes have such a
taint from the node lifecycle controller (upstream: plugins/podtopologyspread/filtering.go:
calPreFilterState).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json, at, items, mapping
from fairlead.api.text.name_list import listed
from fairlead.engine.plugins.inter_pod_affinity.filter import REPELLED, STATUSES
from fairlead.engine.plugins.pod_topology_spread.constraint import (
    DO_NOT_SCHEDULE,
    HONOR,
    SCHEDULE_ANYWAY,
)
from fairlead.engine.plugins.pod_topology_spread.filter import SPREAD_MISMATCH
from fairlead.whatif.outcome.run_outcome import PodEnd
from fairlead.whatif.outcome.scheduling_message import reasons_after_preemption, reasons_of
from fairlead.whatif.outcome.workload import WorkloadRef

_ANTI_AFFINITY: Final = STATUSES[REPELLED].message
_CONSTRAINTS: Final = "topologySpreadConstraints"


class SpreadRule(Struct, frozen=True):
    """The spread constraints and anti-affinity that keep `pods` pods of `workload` pending.

    `constraints` are all topology spread constraints of the workload's pods; only constraints with
    DoNotSchedule keep pods pending. `apart` are the topology keys of the required anti-affinity
    terms. Either `constraints` or `apart` is empty. `needs_preemption` is set if the rejected nodes
    would have room only after a preemption.
    """

    workload: WorkloadRef
    pods: int
    constraints: Sequence[Json] = ()
    apart: Sequence[str] = ()
    needs_preemption: bool = False

    @property
    def words(self) -> str:
        """What keeps the pods pending, as a clause that begins with a noun."""
        if not self.constraints:
            return f"required anti-affinity ({listed(self.apart)})"
        hard = filter(is_hard, self.constraints)
        found = [hard_words(one["topologyKey"], one["maxSkew"], _min_domains(one)) for one in hard]
        noun = "constraint" if len(found) == 1 else "constraints"
        return f"topology spread {noun} ({'; '.join(found)})"

    @property
    def ignores_taints(self) -> bool:
        """Whether a constraint with DoNotSchedule counts nodes with taints that block the pods.

        upstream: the default of nodeTaintsPolicy is Ignore
        """
        hard = filter(is_hard, self.constraints)
        return any(one.get("nodeTaintsPolicy") != HONOR for one in hard)

    @property
    def has_min_domains(self) -> bool:
        """Whether a constraint with DoNotSchedule needs more than one domain.

        If there are fewer domains than minDomains, the scheduler assumes that a domain without pods
        exists (upstream: plugins/podtopologyspread/filtering.go: minMatchNum).
        """
        return any(_min_domains(one) > 1 for one in filter(is_hard, self.constraints))

    def lacks_domains(self, domains: Mapping[str, int]) -> bool:
        """Return whether a constraint has fewer domains in `domains` than its minDomains.

        `domains` maps each topology key to its number of domains that have untainted nodes.
        nodeTaintsPolicy Honor alone does not help such a constraint: if there are too few domains,
        the scheduler assumes that a domain without pods exists.
        """
        return any(_lacks_domains(one, domains) for one in filter(is_hard, self.constraints))

    def with_taints_honored(self, domains: Mapping[str, int]) -> str:
        """Return the value of --set that sets nodeTaintsPolicy Honor in DoNotSchedule constraints.

        `domains` maps each topology key to its number of domains. If such a constraint requires
        more domains than there are, its minDomains is removed, too.
        """
        return self._edited(
            {**one, "nodeTaintsPolicy": HONOR}
            | ({"minDomains": None} if _lacks_domains(one, domains) else {})
            if is_hard(one)
            else one
            for one in self.constraints
        )

    def without_min_domains(self) -> str:
        """Return the value of --set that sets nodeTaintsPolicy Honor and removes minDomains.

        The edit leaves constraints with ScheduleAnyway as they are.
        """
        return self._edit({"nodeTaintsPolicy": HONOR, "minDomains": None})

    def with_anyway(self) -> str:
        """Return the value of --set that sets whenUnsatisfiable ScheduleAnyway."""
        # minDomains is only valid with DoNotSchedule.
        return self._edit({"whenUnsatisfiable": SCHEDULE_ANYWAY, "minDomains": None})

    def _edit(self, fields: Json) -> str:
        return self._edited({**one, **fields} if is_hard(one) else one for one in self.constraints)

    def _edited(self, edited: Iterable[Json]) -> str:
        value = [{key: each for key, each in one.items() if each is not None} for one in edited]
        text = json.dumps(value, separators=(",", ":"))
        return f"{self.workload}:spec.template.spec.{_CONSTRAINTS}={text}"


def hard_words(topology_key: str, max_skew: int, min_domains: int | None = None) -> str:
    """Return a text that describes a topology spread constraint with DoNotSchedule."""
    domains = f", minDomains {min_domains}" if min_domains is not None and min_domains > 1 else ""
    return f"{topology_key}, maxSkew {max_skew}{domains}, {DO_NOT_SCHEDULE}"


def spread_rules(
    pending: Iterable[PodEnd], templates: Mapping[WorkloadRef, Json]
) -> Iterator[SpreadRule]:
    """Yield the rules that keep `pending` pods off nodes with room, in the order of workloads.

    `templates` are the pod specs of the workloads; pods of other workloads are left out. The pod
    specs of custom resources can have any form. So constraints and terms are ignored if they lack
    fields that a pod needs.
    """
    by_workload: dict[WorkloadRef, list[PodEnd]] = {}
    for pod in pending:
        if pod.workload in templates:
            by_workload.setdefault(pod.workload, []).append(pod)
    for ref, pods in sorted(by_workload.items()):
        spec = templates[ref]
        constraints = [one for one in items(spec, _CONSTRAINTS) if _is_constraint(one)]
        skewed, full = _rejected(pods, SPREAD_MISMATCH)
        if skewed and any(map(is_hard, constraints)):
            yield SpreadRule(ref, skewed, constraints=constraints, needs_preemption=full)
        rules = mapping(spec, "affinity", "podAntiAffinity")
        terms = items(rules, "requiredDuringSchedulingIgnoredDuringExecution")
        keys = [key for one in terms if isinstance(key := at(one, "topologyKey"), str)]
        repelled, full = _rejected(pods, _ANTI_AFFINITY)
        if repelled and keys:
            yield SpreadRule(ref, repelled, apart=keys, needs_preemption=full)


def _rejected(pods: Sequence[PodEnd], reason: str) -> tuple[int, bool]:
    """Return (number of `pods` that nodes rejected for `reason`, whether these nodes lack room).

    If nodes with room rejected some of the pods, only these pods count.
    """
    found = sum(any(reason in one for one in reasons_of(pod.reason)) for pod in pods)
    if found:
        return found, False
    after = (reasons_after_preemption(pod.reason) for pod in pods)
    return sum(any(reason in one for one in reasons) for reasons in after), True


def _min_domains(constraint: Json) -> int:
    found = constraint.get("minDomains")
    return found if isinstance(found, int) else 1


def _lacks_domains(constraint: Json, domains: Mapping[str, int]) -> bool:
    needed = _min_domains(constraint)
    return needed > 1 and needed > domains.get(constraint["topologyKey"], 0)


def _is_constraint(value: Any) -> bool:
    return isinstance(at(value, "topologyKey"), str) and isinstance(at(value, "maxSkew"), int)


def is_hard(constraint: Json) -> bool:
    """Return whether a topology spread `constraint` forbids nodes, rather than only scores them."""
    return bool(constraint.get("whenUnsatisfiable", DO_NOT_SCHEDULE) == DO_NOT_SCHEDULE)
