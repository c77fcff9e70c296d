"""fit --autoscale: how many pods fit before a limit of the autoscaler or of a quota is reached.

The cluster is simulated with its autoscaler and with a new workload, whose pods are copies of the
given pod. The simulation is repeated with more pods until some pods find no node. The answer
describes the last simulation, which runs until nothing changes any more. The other simulations end
when all pods have a node. If the new pods must not preempt other pods, they use a copy of the given
pod's scheduler profile without PostFilter plugins.

If an autoscaler removes and adds nodes without end, some pod may always be without a node. The
count is then the largest number of pods that had a node at the same time.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.count import counted
from fairlead.apiserver.kind import DEPLOYMENT
from fairlead.engine.core.instant import DurationNs, Instant, seconds, to_seconds
from fairlead.engine.framework.profile import ALL, DEFAULT_SCHEDULER, PointPlugins, Profile
from fairlead.engine.workloads.stateful_set.rule import PARALLEL
from fairlead.whatif.change import commands
from fairlead.whatif.change.step import ScriptedStep
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.autoscaling.node_group import HOURS_PER_MONTH, AutoscalingOutcome
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import notes_about
from fairlead.whatif.outcome.autoscaling.reached_limit import reached_limit_words
from fairlead.whatif.outcome.autoscaling.refused_pod import refused_notes
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
from fairlead.whatif.outcome.workload import POD, WorkloadRef
from fairlead.whatif.planner.fit import (
    BreachedBudget,
    breach_words,
    breaches_json,
    victims_table,
)
from fairlead.whatif.planner.new_pod import NewPods
from fairlead.whatif.planner.waiting_pods import preemption_words
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    WORDS,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.manifest_reader import manifests

ELASTIC_MAX: Final = 5_000
"""The maximum number of pods to try, unless --max-limit sets another number."""
_FIRST: Final = 250
_GROWTH: Final = 4
_LABEL: Final = "fairlead.dev/fit"
_SCHEDULER: Final = "fairlead-fit"
_NEW_PODS: Final = "the new pods"
_NO_PLUGINS: Final = PointPlugins(disabled=(ALL,))


class ElasticFit(Struct, frozen=True):
    """The result: `count` of `tried` new pods have a node at the end of `outcome`.

    The new pods may be copies of the pods of an existing workload (--like). If pods of this
    workload lose their nodes and are pending at the end, `count` is reduced by their number,
    because new pods use their room. If the cluster still changes at the end of `outcome`, `count`
    is the largest number of new pods that had a node at the same time.
    """

    owners: tuple[WorkloadRef, ...]  # the simulated workloads of the new pods
    count: int
    tried: int
    stop: str  # the reason why the other new pods have no node, "" if all new pods have a node
    refused_by: str  # "admission", "autoscaler", "scheduling" or "limit"
    # The first time at which `count` new pods had a node, or the start of `outcome` if `count` is
    # 0.
    filled_at: Instant
    outcome: RunOutcome
    victims: tuple[PodEnd, ...]  # the pods that the new pods preempted
    lost: int  # the number of `victims` that have no node at the end
    breached: tuple[BreachedBudget, ...] = ()  # the budgets that these preemptions breached
    # The number of pods of the workload of --like that are pending, but have not lost a node.
    without_node: int = 0

    @property
    def autoscaling(self) -> AutoscalingOutcome:
        """The effects of the autoscaler."""
        assert self.outcome.autoscaling is not None
        return self.outcome.autoscaling


def elastic_fit(
    experiment: Experiment,
    source: NewPods,
    progress: Progress,
    pods_max: int = ELASTIC_MAX,
    *,
    preempts: bool = False,
) -> ElasticFit:
    """Return the number of pods of `source` that fit in `experiment`, which has an autoscaler.

    At most `pods_max` pods are tried. The new pods preempt other pods only if `preempts` is set.
    Raises InputError for a pod that is invalid.
    """
    scheduler = source.pod(0)["spec"].get("schedulerName") or DEFAULT_SCHEDULER
    profile = next(
        (one for one in experiment.scheduler.profiles if one.scheduler_name == scheduler), None
    )
    if profile is not None and not preempts:
        scheduler = _SCHEDULER
        experiment = _with_profile(experiment, profile)
    # The autoscaler first removes the nodes that it would remove without the new pods, too. They
    # must not count for its limits.
    without_pods = replace(experiment, steps_begin=None)
    rest = run_experiment(without_pods, "without the new pods", progress).outcome.rest
    experiment = replace(experiment, steps_begin=rest.after or 0)
    kept = min(source.kept_pods, pods_max)
    counts = [kept] if kept else []
    counts += [one for one in _counts(pods_max) if one > kept]
    delay = 0
    for number, count in enumerate(counts, 1):
        phase = f"simulation {number} of at most {len(counts)}: {count:,} pods"
        workloads = [_workload(source, kept, scheduler)] if kept else []
        if count > kept:
            workloads.append(_workload(source, count - kept, scheduler, kept))
        run = _with_workloads(experiment, source, workloads, delay, settles=count == pods_max)
        found = _found(run_experiment(run, phase, progress).outcome, source, workloads, count)
        if found.stop:
            break
        if count == kept:
            delay = found.filled_at - found.outcome.started_at
    return found


def _with_profile(experiment: Experiment, profile: Profile) -> Experiment:
    """Return `experiment` with a further profile: `profile` without PostFilter plugins.

    Cluster Autoscaler treats pods of the new profile as pods of `profile`.
    """
    points = {**profile.points, "PostFilter": _NO_PLUGINS}
    ours = replace(profile, scheduler_name=_SCHEDULER, points=points)
    config = experiment.scheduler
    config = dataclasses.replace(config, profiles=(*config.profiles, ours))
    autoscaler = experiment.autoscaler
    if autoscaler is not None:
        options = autoscaler.options
        options = replace(
            options,
            allowed_scheduler_names=_with_ours(options.allowed_scheduler_names, profile),
            bypassed_scheduler_names=_with_ours(options.bypassed_scheduler_names, profile),
        )
        autoscaler = replace(autoscaler, options=options)
    return replace(experiment, scheduler=config, autoscaler=autoscaler)


def _with_ours(names: tuple[str, ...], profile: Profile) -> tuple[str, ...]:
    """Return `names`; if they contain the name of `profile`, add the name of the new profile.

    The new profile is the one that `_with_profile` adds.
    """
    return (*names, _SCHEDULER) if profile.scheduler_name in names else names


def _counts(pods_max: int) -> list[int]:
    """Return the numbers of pods to try; the last number is `pods_max`.

    Each number is at least twice the number before it. For example, the numbers are 250, 1,000 and
    5,000 if `pods_max` is 5,000.
    """
    found = []
    count = _FIRST
    while count * 2 < pods_max:
        found.append(count)
        count *= _GROWTH
    return [*found, pods_max]


def _with_workloads(
    experiment: Experiment,
    source: NewPods,
    workloads: Iterable[Json],
    delay: DurationNs,
    *,
    settles: bool,
) -> Experiment:
    """Return `experiment` with steps that create `workloads`, each `delay` after the one before it.

    The run ends when nothing changes any more. If `settles` is not set, the run also ends as soon
    as all pods of the workloads have a node.
    """
    found = manifests(Document(source.source, one) for one in workloads)
    steps = tuple(
        ScriptedStep(delay * number, (commands.create(one),), source.source, source.title)
        for number, one in enumerate(found)
    )
    filled = () if settles else tuple((_ref(one), one["spec"]["replicas"]) for one in workloads)
    return replace(experiment, steps=steps, ends_when_filled=filled)


def _found(
    outcome: RunOutcome, source: NewPods, workloads: Iterable[Json], count: int
) -> ElasticFit:
    refs = tuple(map(_ref, workloads))
    own = tuple(pod for pod in outcome.pods.values() if pod.owner in refs)
    displaced = {pod.key for pod in outcome.displaced}
    present = [
        pod
        for pod in outcome.pending
        if str(pod.workload) == source.title and pod.owner not in refs
    ]
    ousted = tuple(pod for pod in present if pod.key in displaced)
    placed = max(sum(pod.is_placed for pod in own) - len(ousted), 0)
    with_node = list(_with_node(outcome, refs))
    if not outcome.settled:
        placed = max((placed, *(number for _, number in with_node)))
    filled_at = next((at for at, number in with_node if number >= placed), outcome.started_at)
    stop, refused_by = "", ""
    if placed < count:
        subjects = [f"{ref.kind} {ref.namespace}/{ref.name}" for ref in refs]
        stop, refused_by = _stop(outcome, own + ousted, subjects)
    if not stop:
        refused_by = "limit"
    keys = {pod.key for pod in own}
    preempted = [one.pod for one in outcome.preempted if one.by in keys]
    pending = Counter(pod.workload for pod in outcome.pods.values() if pod.is_pending)
    lost = sum(
        number if workload.kind == POD else min(number, pending[workload])
        for workload, number in Counter(pod.workload for pod in preempted).items()
    )
    return ElasticFit(
        refs,
        placed,
        count,
        stop,
        refused_by,
        filled_at,
        outcome,
        tuple(preempted),
        lost,
        tuple(_breached(outcome, keys, preempted)),
        len(present) - len(ousted),
    )


def _breached(
    outcome: RunOutcome, preemptors: Container[str], victims: Iterable[PodEnd]
) -> Iterator[BreachedBudget]:
    """Yield the budgets that the pods `preemptors` breached by the preemption of `victims`.

    `BreachedBudget.allowed` is the number of victims whose preemption did not breach the budget.
    The budget may allow more evictions at the end, because preempted pods may run again.
    """
    breaches = Counter(one.pdb for one in outcome.pdb_breaches if one.by in preemptors)
    preempted = Counter(pod.key for pod in victims)
    for budget in outcome.budgets:
        if number := breaches[budget.pdb]:
            evicted = sum(preempted[key] for key in budget.displaced)
            yield BreachedBudget(budget.pdb, evicted, evicted - number)


def _with_node(
    outcome: RunOutcome, workloads: Container[WorkloadRef]
) -> Iterator[tuple[Instant, int]]:
    """Yield (time, number of pods of `workloads` with a node) at each change, ordered by time.

    If a pod of the same name replaces an evicted pod, the number is lower until the new pod has a
    node.
    """
    waits = defaultdict(list)
    for one in outcome.waits:
        if one.workload in workloads:
            waits[one.pod].append(one)
    changes: list[tuple[Instant, int]] = []
    for its_waits in waits.values():
        its_waits.sort(key=lambda one: one.since)
        changes += [(one.since, -1) for one in its_waits[1:]]
        changes += [(one.until, 1) for one in its_waits if one.until is not None]
    number = 0
    for at, change in sorted(changes):
        number += change
        yield at, number


def _ref(workload: Json) -> WorkloadRef:
    meta = workload["metadata"]
    return WorkloadRef(workload["kind"], meta["namespace"], meta["name"])


def _workload(source: NewPods, count: int, scheduler: str, first: int = 0) -> Json:
    """Return a workload of `count` pods of `source` whose schedulerName is `scheduler`.

    The pods are like the pod number `first` of `source`; the numbers begin at 0. The workload is a
    StatefulSet if each pod has its own claims, and a ReplicaSet otherwise.
    """
    pod = source.pod(first)
    meta = {key: pod["metadata"].get(key) or {} for key in ("labels", "annotations")}
    meta["labels"] = {**meta["labels"], _LABEL: source.name}
    template: Mapping[str, Any] = {"metadata": meta, "spec": _always(pod["spec"], scheduler)}
    spec: Json = {
        "replicas": count,
        "selector": {"matchLabels": {_LABEL: source.name}},
        "template": template,
    }
    kind = "ReplicaSet"
    if source.has_claims:
        kind = "StatefulSet"
        spec["podManagementPolicy"] = PARALLEL
        spec["serviceName"] = source.name
        spec["volumeClaimTemplates"] = list(source.claim_templates)
        spec["template"] = {
            "metadata": meta,
            "spec": _always(dict(source.template_of(first)["spec"]), scheduler),
        }
    name = f"{source.name}-fit-new" if first else f"{source.name}-fit"
    metadata: Json = {"name": name, "namespace": source.namespace}
    # Admission adds to the pods what it added to those of the owner (`ObservedMutations`). A
    # Deployment would scale the ReplicaSet.
    if source.owner is not None and source.owner["kind"] != DEPLOYMENT.kind:
        metadata["ownerReferences"] = [source.owner]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _always(spec: Json, scheduler: str) -> Json:
    """Return a pod's spec in the form that a ReplicaSet accepts, without `nodeName`.

    restartPolicy becomes "Always", schedulerName becomes the value of `scheduler`, and
    activeDeadlineSeconds is removed.
    """
    kept = {key: value for key, value in spec.items() if key != "nodeName"}
    kept.pop("activeDeadlineSeconds", None)
    return {**kept, "restartPolicy": "Always", "schedulerName": scheduler}


def _stop(
    outcome: RunOutcome, own: tuple[PodEnd, ...], subjects: Container[str]
) -> tuple[str, str]:
    """Return (`stop`, `refused_by`), the fields of ElasticFit that say why new pods have no node.

    `own` are the new pods, and the existing pods whose room new pods use. If some of these pods are
    pending, `stop` is the reason of one pending pod, preferably of a pod that never had a node. If
    no such pod is pending, `stop` is the first of `outcome.errors` about `subjects`, the names of
    the workloads. Return ("", "") if there is no such error.
    """
    bound = {one.pod for one in outcome.waits if one.until is not None}
    pending = (pod for pod in own if pod.is_pending)
    waiting = min(pending, key=lambda pod: pod.key in bound, default=None)
    if waiting is None:
        error = next((one for one in outcome.errors if one.subject in subjects), None)
        return ("", "") if error is None else (error.message, "admission")
    reasons = {} if outcome.autoscaling is None else outcome.autoscaling.waiting
    if waiting.key in reasons:
        return reasons[waiting.key], "autoscaler"
    return waiting.reason or "the simulation ended before it had a node", "scheduling"


# --- the answer -------------------------------------------------------------------------------


def elastic_fit_answer(
    result: ElasticFit, source: NewPods, name: str, notes: tuple[str, ...], wanted: int = 1
) -> TabularAnswer:
    """Return the answer about `result`; `name` is the name of the snapshot.

    The answer is no if fewer than `wanted` pods fit.
    """
    found, outcome = result.autoscaling, result.outcome
    # No option of `fit` states a load.
    run_notes = notes_about(outcome.notes, outcome.pod_autoscalers, (), remedy="")
    # The reasons why some new pods waited before they fitted are left out. Often, other new pods
    # fit nowhere for the same reason, which the answer states.
    past_waits = set(refused_notes(found.refused, found.autoscaler))
    run_notes = tuple(note for note in run_notes if note not in past_waits)
    about_pods = filter(None, [source.missing_revision])
    facts: Json = {
        "pod": source.title,
        "namespace": source.namespace,
        "count": result.count,
        "replicas_today": source.replicas,
        "stop": {
            "by": result.refused_by,
            "message": result.stop or f"--max-limit is {result.tried:,}",
        },
        "autoscaler": found.autoscaler,
        "nodes_added": found.added,
        "nodes_after": found.nodes_after,
        "cost_per_hour": found.cost_per_hour,
        "cost_is_estimated": found.is_cost_estimated,
        "preempted": len(result.victims),
        "preempted_without_node": result.lost,
        "breached_budgets": breaches_json(result.breached),
        "ready_after_s": round(_bound_after_s(result), 3),
    }
    return TabularAnswer(
        "Fit",
        name,
        _verdict(result, source),
        tuple(_findings(result, source)),
        (_groups(result), _reasons(result), victims_table(result.victims)),
        facts,
        tuple(dict.fromkeys((*about_pods, *notes, *run_notes))),
        is_no=result.count < wanted,
    )


def _verdict(result: ElasticFit, source: NewPods) -> str:
    what = f"of {source.title}"
    in_all = source.in_all(result.count, result.without_node)
    if not result.stop:
        more = counted(result.count, "more pod")
        return f"At least {more} {what} fit{in_all}."
    if not result.count:
        return f"No further pod {what} fits, whatever the autoscaler adds."
    added = counted(result.autoscaling.added, "added node")
    verb = "fits" if result.count == 1 else "fit"
    more = counted(result.count, "more pod")
    return f"{more} {what} {verb}, with {added}{in_all}."


def _findings(result: ElasticFit, source: NewPods) -> Iterator[str]:
    if result.stop:
        yield f"The next pod is not placed: {result.stop}"
        new = [pod.key for pod in result.outcome.pending if not pod.is_initial]
        if words := reached_limit_words(result.autoscaling.limits, new):
            yield words
    else:
        yield f"No limit is reached below --max-limit, which is {result.tried:,}."
    if too_many := source.above_maximum(result.count):
        yield too_many
    outcome = result.outcome
    if outcome.awaited_removals:
        yield f"{result.autoscaling.autoscaler} may remove nodes later: {outcome.removal_words}."
    elif not outcome.settled:
        after = for_readers(seconds(outcome.virtual_seconds))
        acting = outcome.acting_autoscaler
        because = f": {acting} was still adding or removing nodes" if acting else ""
        yield f"The cluster had not settled after {after}, when the simulation ended{because}."
    if result.victims:
        yield preemption_words(len(result.victims), result.lost)
    if result.breached:
        yield breach_words(result.breached)
    cost = result.autoscaling.cost_per_hour
    if cost is not None:
        month = cost * HOURS_PER_MONTH
        whose = f"the nodes of {result.autoscaling.autoscaler}"
        about = "an estimated " if result.autoscaling.is_cost_estimated else ""
        yield f"Then {whose} cost {about}{cost:,.2f} per hour, {month:,.0f} per month."
    if result.count:
        after = for_readers(seconds(_bound_after_s(result)))
        yield f"The last of these pods has a node after {after}."


def _bound_after_s(result: ElasticFit) -> float:
    """Return `result.filled_at` in seconds after the start of `result.outcome`."""
    return to_seconds(result.outcome.after_start(result.filled_at))


def _groups(result: ElasticFit) -> ResultTable:
    rows = [
        {
            "group": one.group,
            "type": one.instance_type,
            "before": one.before,
            "after": one.after,
            "max": one.maximum,
        }
        for one in result.autoscaling.groups
    ]
    columns = (
        ResultColumn("group", "group", NAME),
        ResultColumn("type", "type", NAME, 1),
        ResultColumn("before", "nodes before", NUMBER),
        ResultColumn("after", "after", NUMBER),
        ResultColumn("max", "maximum", NUMBER, 1),
    )
    return ResultTable("groups", f"nodes by {result.autoscaling.autoscaler}", columns, rows)


def _reasons(result: ElasticFit) -> ResultTable:
    """Return a table of the reasons why pods have no node, with the number of pods.

    Pods of other workloads are counted too: the new pods may have taken the room of these pods.
    """
    waiting = result.autoscaling.waiting
    counts = Counter(
        (
            _NEW_PODS if pod.owner in result.owners else str(pod.workload),
            (waiting.get(pod.key) or pod.reason).replace(pod.key.rpartition("/")[2], "<pod>"),
        )
        for pod in result.outcome.pods.values()
        if pod.is_pending
    )
    rows = [
        {"pods": count, "workload": workload, "reason": reason}
        for (workload, reason), count in counts.most_common()
    ]
    columns = (
        ResultColumn("pods", "pods", NUMBER),
        ResultColumn("workload", "of", NAME),
        ResultColumn("reason", "because", WORDS),
    )
    return ResultTable("refusals", "why pods have no node", columns, rows)
