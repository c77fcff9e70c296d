"""Explains a ResourceQuota: what is used and left, who uses it, and which workloads wait for it.

The usage comes from the status of the quota, as `kubectl describe quota` shows it. If a quota has
no status, as in a file of manifests, its usage is counted from the objects in its namespace. The
messages in the statuses of workloads show which workloads wait. For Jobs, a trial shows whether
they wait (`explain.uncreated_pod`).
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json, mapping
from fairlead.api.objects import Pod
from fairlead.api.quantity import Quantity, canonical
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import joined, listed
from fairlead.apiserver.admission.quota.amounts import Amounts, add, amounts, subtract
from fairlead.apiserver.admission.quota.resource_quota import QuotaExcess
from fairlead.apiserver.admission.quota.usage import (
    is_counted,
    is_in_scopes,
    required_by_quota,
    scope_requirements,
    usage,
)
from fairlead.apiserver.kind import POD, RESOURCE_QUOTA
from fairlead.whatif.explain.uncreated_pod import held_pods, uncreated_rows
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.new_pod import new_pods_of
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.snapshot import Snapshot

_NAMED_MAX: Final = 3
_ZERO: Final = Quantity(nano=0)
_RESOURCE_COLUMNS: Final = (
    ResultColumn("resource", "resource", NAME),
    ResultColumn("used", "used", NUMBER),
    ResultColumn("hard", "limit", NUMBER),
    ResultColumn("left", "left", NUMBER),
)
_QUOTA_COLUMNS: Final = (
    ResultColumn("quota", "quota", NAME),
    ResultColumn("scarcest", "resource", NAME),
    *_RESOURCE_COLUMNS[1:],
    ResultColumn("pods", "missing pods", NUMBER),
)
_WAITING_COLUMNS: Final = (
    ResultColumn("pods", "missing pods", NUMBER),
    ResultColumn("workload", "workload", NAME),
    ResultColumn("since_s", "for", SECONDS, rank=1),
    ResultColumn("why", "because"),
)
_USER_COLUMNS: Final = (
    ResultColumn("user", "used by", NAME),
    ResultColumn("objects", "objects", NUMBER),
    ResultColumn("uses", "uses"),
)


def explain_quotas(model: ClusterModel, snapshot: Snapshot, namespace: str = "") -> TabularAnswer:
    """Return a comparison of all ResourceQuotas of `snapshot`; `model` is unchanged afterwards.

    If `namespace` is set, only the ResourceQuotas of this namespace are compared.
    """
    inventory = snapshot.inventory()
    uncreated = uncreated_rows(model, inventory, held_pods(model, inventory))
    rows: list[Row] = []
    quotas = (
        one for one in inventory.of_kind(RESOURCE_QUOTA) if namespace in ("", one.ref.namespace)
    )
    for quota in sorted(quotas, key=lambda one: one.ref.key):
        hard, used = _limits(model, quota)
        rest = subtract(hard, used)
        names = _scarcest(hard, {name: rest[name] for name in hard})
        name = names[0] if names else ""
        amounts_of = {"used": used, "hard": hard, "left": rest}
        rows.append({
            "quota": quota.ref.key,
            "resource": name,
            "scarcest": listed(names, 1),
            **{key: canonical(one.get(name, _ZERO)) if name else ""
               for key, one in amounts_of.items()},
            "pods": sum(row["pods"] for row in _waiting_rows(uncreated, quota, inventory)),
        })  # fmt: skip
    missing = sum(row["pods"] for row in rows)
    lack = f"{counted(missing, 'pod is', 'pods are')} not created because of"
    state = (
        f"{lack} {'it' if len(rows) == 1 else 'them'}"
        if missing
        else "no workload lacks pods because of quotas"
    )
    verdict = f"{counted(len(rows), 'quota')}; {state}."
    if not rows:
        absence = inventory.absence(RESOURCE_QUOTA)
        if namespace and inventory.of_kind(RESOURCE_QUOTA):
            absence = f"namespace {namespace} has no {RESOURCE_QUOTA.kind}"
        verdict = f"{absence[0].upper()}{absence[1:]}."
    return TabularAnswer(
        kind="QuotasExplanation",
        source=snapshot.source,
        verdict=verdict,
        tables=(ResultTable("quotas", "quotas and their scarcest resources", _QUOTA_COLUMNS,
                            rows, shown=20),),
        facts={"missing_pods": missing},
    )  # fmt: skip


def explain_quota(model: ClusterModel, quota: Manifest, snapshot: Snapshot) -> TabularAnswer:
    """Return the explanation of `quota`, a ResourceQuota of `snapshot`.

    `model` is the ClusterModel of `snapshot`; it is unchanged afterwards.
    """
    hard, used = _limits(model, quota)
    rest = subtract(hard, used)
    left = {name: rest[name] for name in hard}
    inventory = snapshot.inventory()
    uncreated = uncreated_rows(model, inventory, held_pods(model, inventory))
    waiting = _waiting_rows(uncreated, quota, inventory)
    users = _user_rows(model, quota, hard)
    raised = _sufficient(hard, used, waiting)
    return TabularAnswer(
        kind="QuotaExplanation",
        source=snapshot.source,
        verdict=_verdict(quota, hard, left, waiting),
        findings=tuple(_findings(quota, hard, raised, waiting, inventory)),
        tables=(
            ResultTable("resources", "its resources", _RESOURCE_COLUMNS, [
                {"resource": name, "used": canonical(used.get(name, _ZERO)),
                 "hard": canonical(hard[name]), "left": canonical(left[name])}
                for name in sorted(hard)
            ]),
            ResultTable("waiting", "workloads that wait for it", _WAITING_COLUMNS,
                        [{key: one for key, one in row.items() if key != "needs"}
                         for row in waiting]),
            ResultTable("users", "who uses it", _USER_COLUMNS, users),
        ),
        facts={
            "quota": quota.ref.key,
            "missing_pods": sum(row["pods"] for row in waiting),
            "sufficient": {name: canonical(one) for name, one in sorted(raised.items())},
        },
        steps=tuple(_steps(quota, raised, snapshot.question_arguments)),
    )  # fmt: skip


def _limits(model: ClusterModel, quota: Manifest) -> tuple[Amounts, Amounts]:
    """Return (limits, usage) of `quota`, by resource."""
    spec, status = mapping(quota.value, "spec"), mapping(quota.value, "status")
    if not status.get("used"):
        with model.hypothesis():
            model.count_quotas(quota.ref.namespace)
            found = model.store.find(RESOURCE_QUOTA, quota.ref.namespace, quota.ref.name)
        status = mapping(found or {}, "status")
    return amounts(spec.get("hard")), amounts(status.get("used"))


def _verdict(quota: Manifest, hard: Amounts, left: Amounts, waiting: Sequence[Row]) -> str:
    name = f"quota/{quota.ref.key}"
    if not hard:
        return f"{name} limits nothing."
    spent = sorted(one for one, amount in left.items() if amount.nano <= 0)
    state = f"{name} is used up: nothing is left of {joined(spent)}" if spent else ""
    if not state:
        scarce = [
            f"{one} ({canonical(left[one])} of {canonical(hard[one])} left)"
            for one in _scarcest(hard, left)
        ]
        resources = "resource is" if len(scarce) == 1 else "resources are"
        lacks = any(row["needs"] for row in waiting)
        room = "has too little room" if lacks else "has room"
        state = f"{name} {room}; its scarcest {resources} {listed(scarce, _NAMED_MAX)}"
    if not waiting:
        return f"{state}; no workload lacks pods because of it."
    pods = counted(sum(row["pods"] for row in waiting), "pod")
    workloads = counted(len(waiting), "workload lacks", "workloads lack")
    return f"{state}; {workloads} {pods} because of it."


def _scarcest(hard: Amounts, left: Amounts) -> list[str]:
    """Return the resources with the smallest share of their limit `left`; [] without limits."""
    ratios = {one: _ratio(left[one], hard[one]) for one in sorted(hard)}
    least = min(ratios.values(), default=0.0)
    return [one for one, ratio in ratios.items() if ratio == least]


def _ratio(part: Quantity, whole: Quantity) -> float:
    return part.nano / whole.nano if whole.nano else 0.0


def _findings(
    quota: Manifest,
    hard: Amounts,
    raised: Amounts,
    waiting: Sequence[Row],
    inventory: Inventory,
) -> Iterator[str]:
    if raised:
        higher = [f"{canonical(one)} {name}" for name, one in sorted(raised.items())]
        which = "" if all(row["needs"] for row in waiting) else " that specify what it requires"
        yield f"A limit of {joined(higher)} admits the missing pods{which}."
    scopes = [_scope_text(one) for one in scope_requirements(mapping(quota.value, "spec"))]
    if scopes:
        yield f"It counts only objects in its scopes: {listed(scopes, _NAMED_MAX)}."
    if required := sorted(required_by_quota(hard)):
        yield (
            f"It refuses pods with a container that does not specify {joined(required)}, "
            "unless a LimitRange sets a default."
        )
    others = _other_pod_quotas(quota, inventory)
    if plain := sorted(name for name, scopes in others.items() if not scopes):
        quotas = listed(plain, _NAMED_MAX)
        yield f"A new pod must also fit into the other quotas of its namespace: {quotas}."
    if scoped := [f"{name} ({one})" for name, one in sorted(others.items()) if one]:
        quotas = listed(scoped, _NAMED_MAX)
        yield f"Other quotas of its namespace count only pods in their scopes: {quotas}."


def _other_pod_quotas(quota: Manifest, inventory: Inventory) -> dict[str, str]:
    """Return the scopes of each other quota that counts pods, as text, by the name of the quota.

    Only quotas in the namespace of `quota` are included. The text is "" for a quota without scopes.
    """
    found = {}
    for one in inventory.of_kind(RESOURCE_QUOTA):
        if one.ref.namespace != quota.ref.namespace or one.ref == quota.ref:
            continue
        spec = mapping(one.value, "spec")
        if any(is_counted(POD, name) for name in mapping(spec, "hard")):
            found[one.ref.name] = ", ".join(map(_scope_text, scope_requirements(spec)))
    return found


def _scope_text(scope: Json) -> str:
    values = ", ".join(scope.get("values") or ())
    operator = scope.get("operator", "Exists")
    return f"{scope['scopeName']} {operator} {values}".rstrip().removesuffix(" Exists")


def _waiting_rows(uncreated: Iterable[Row], quota: Manifest, inventory: Inventory) -> list[Row]:
    """Return a row for each workload with pods that `quota` refuses; most missing pods first.

    `uncreated` has a row for each workload that lacks pods.
    """
    found: list[Row] = []
    for row in uncreated:
        if row["workload"].split("/")[1] != quota.ref.namespace:
            continue
        excess = QuotaExcess.read(row["why"])
        if excess is not None and excess.quota == quota.ref.name:
            needs = _usage_of_pod(row["workload"], inventory) | excess.requested
            found.append({**row, "needs": needs})
        elif f"failed quota: {quota.ref.name}: " in row["why"]:
            found.append({**row, "needs": {}})  # a higher limit does not help
    return found


def _usage_of_pod(workload: str, inventory: Inventory) -> Amounts:
    """Return the amounts that one more pod of `workload` (kind/namespace/name) would use.

    The defaults of LimitRanges are not included.
    """
    found = inventory.find("explain", workload)
    try:
        return usage(POD, new_pods_of("explain", found, inventory).pod(0))
    except InputError:  # an invalid workload
        return {}


def _sufficient(hard: Amounts, used: Amounts, waiting: Sequence[Row]) -> Amounts:
    """Return the limits above `hard` with which the quota admits the pods of `waiting`.

    A resource that these pods do not use is left out, even if its usage is above its limit: the
    quota compares only the resources that a new pod uses.
    """
    needed, wanted = used, set[str]()
    for row in waiting:
        needs: Amounts = row["needs"]
        pods = row["pods"]
        more = {n: Quantity(nano=one.nano * pods, format=one.format) for n, one in needs.items()}
        needed = add(needed, more)
        wanted |= needs.keys()
    return {name: needed[name] for name in hard if name in wanted and needed[name] > hard[name]}


def _steps(quota: Manifest, raised: Amounts, arguments: Sequence[str]) -> Iterator[NextStep]:
    if raised:
        texts = {name: canonical(raised[name]) for name in sorted(raised)}
        path = f"quota/{quota.ref.key}:spec.hard"
        edits = (word for name, one in texts.items() for word in ("--set", f"{path}[{name}]={one}"))
        question = shlex.join(("fairlead", "whatif", *arguments, *edits))
        yield NextStep("simulate higher limits first", command=question)
        patch = json.dumps({"spec": {"hard": texts}}, separators=(",", ":"))
        words = ("kubectl", "patch", "resourcequota", "-n", quota.ref.namespace, quota.ref.name)
        command = shlex.join((*words, "-p", patch))
        yield NextStep("raise the limits of the quota", command=command, makes_change=True)


def _user_rows(model: ClusterModel, quota: Manifest, hard: Amounts) -> list[Row]:
    """Return a row for each workload, and for each object without pods, that `quota` counts.

    The row of the largest user comes first.
    """
    spec, namespace = mapping(quota.value, "spec"), quota.ref.namespace
    totals: dict[str, Amounts] = defaultdict(dict)
    objects: dict[str, int] = defaultdict(int)
    storage = model.store.storage
    for kind in storage.kinds():
        if not kind.namespaced or not any(is_counted(kind, name) for name in hard):
            continue
        for obj in storage.items(kind, namespace):
            uses = {name: one for name, one in usage(kind, obj).items() if name in hard}
            if not uses or not is_in_scopes(kind, obj, spec):
                continue
            is_pod = kind is POD
            user = (
                str(workload_of(decode_as(Pod, obj)))
                if is_pod
                else f"{kind.kind.lower()}/{namespace}/{obj['metadata']['name']}"
            )
            totals[user] = add(totals[user], uses)
            objects[user] += 1

    def size(user: str) -> float:
        return max(_ratio(one, hard[name]) for name, one in totals[user].items())

    return [
        {
            "user": user,
            "objects": objects[user],
            "amounts": {name: canonical(one) for name, one in sorted(totals[user].items())},
            "uses": _text(totals[user]),
        }
        for user in sorted(totals, key=lambda user: (-size(user), user))
    ]


def _text(uses: Mapping[str, Quantity]) -> str:
    return ", ".join(f"{canonical(one)} {name}" for name, one in sorted(uses.items()))
