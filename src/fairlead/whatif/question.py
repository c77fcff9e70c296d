"""what_if: runs a cluster with and without a change and compares the two runs."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import text
from fairlead.api.pods.facts import controller_of, is_terminating
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import HOSTNAME
from fairlead.apiserver.kind import DAEMON_SET, DEPLOYMENT, NODE, POD
from fairlead.engine.batch.scheduler_name import FAIRLEAD
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.change.arrival import arriving_together, rearranged
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.kubectl_drain import KubectlDrain, with_daemon_set_pods
from fairlead.whatif.conditions import (
    DEFAULT_CONDITIONS,
    Conditions,
    check_seeds,
    with_scheduler_arguments,
)
from fairlead.whatif.configuration.batch.batch_config import assumed_rules
from fairlead.whatif.configuration.stored_configuration import configuration_note
from fairlead.whatif.experiment_pair import ExperimentPair, experiments_of
from fairlead.whatif.input.duration import for_readers, read_duration
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.given_plugin import plugin_text
from fairlead.whatif.input.option_type import require_type
from fairlead.whatif.input.seeded_choice import shuffled
from fairlead.whatif.outcome.assessment.certainty import (
    SeedOutcome,
    certainty,
    order_matters,
    seed_outcome,
)
from fairlead.whatif.outcome.assessment.verdict import Verdict, verdict_of
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import notes_about
from fairlead.whatif.outcome.comparison.effect import Effect, by_reason, effect_of
from fairlead.whatif.outcome.packing import PackingRow, packing
from fairlead.whatif.outcome.run_outcome import RunOutcome, Undrained
from fairlead.whatif.outcome.start_time import StartTimes
from fairlead.whatif.run.capacity.allocation import nodes_in
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.experiment_run import CommandLog, run_experiment
from fairlead.whatif.run.parallel.run_pair import RunPair, run_pair
from fairlead.whatif.run.pod_timing.runtime import (
    Runtimes,
    StatedRuntime,
    coverage,
    runtimes_in,
    unmatched,
)
from fairlead.whatif.run.progress import NoProgress, Progress
from fairlead.whatif.snapshot.dump_note import dump_notes, kueue_notes
from fairlead.whatif.snapshot.live.live_resource import unreadable_notes
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.node_pool import name_of_node
from fairlead.whatif.snapshot.samples import matching_pods, samples
from fairlead.whatif.snapshot.served_kind import is_custom
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.whatif.snapshot.unready_pod import unready_note, unready_pods

if TYPE_CHECKING:
    from fairlead.worlds.decision_log import Logging


DRAWS_DEFAULT: Final = 20
_MANY_WAIT: Final = ("pods wait", "their start times")
UNCHANGED: Final = "without a change"
REVERSED: Final = "with the change, in reverse order"
# The number of this purpose in `seeded_choice`: a random order of arrival. Node selection and
# scenario events have other numbers, so their random choices are independent of this order.
_ARRIVAL: Final = 1 << 41
# A trial of a next step ends if it has so many more repeated displacements than the user's what-if.
_MORE_RECURRENCES_MAX: Final = 100
_LOAD_IN_BOTH_RUNS: Final = (
    "The load of --load applies with and without a change. No change was requested, so this answer "
    "shows what happens under this load."
)
PODS_STAY: Final = (
    "Running pods stay where they are: a scheduler decides only about pods that wait. With "
    "--reschedule all, or --reschedule and a label selector, both runs place running pods anew."
)
IN_BOTH_RUNS: Final = (
    "--config, --plugin and --batch-config act in both runs; --new-config, --new-plugin and "
    "--new-batch-config act in the run with the change only."
)


def what_if(  # noqa: PLR0913 - a question, and who observes the runs
    snapshot: Snapshot,
    change: ClusterChange,
    conditions: Conditions = DEFAULT_CONDITIONS,
    *,
    progress: Progress | None = None,
    command_log: CommandLog | None = None,
    logging: Logging | None = None,
    on_verdict: Callable[[WhatIfAnswer], None] | None = None,
) -> WhatIfAnswer:
    """Run `snapshot` with and without `change` and compare the runs. Raises InputError.

    The run without `change` shows when the cluster comes to rest. Usually, the run with `change`
    makes the change at this time (see `run_pair`). `command_log` receives the commands of the run
    with the change. `logging` wraps the reporter of that run in a reporter that logs decisions.

    Before next steps are tried, `on_verdict` is called with the answer without next steps. The
    trials of next steps may take longer than the two runs.
    """
    progress = progress or NoProgress()
    answer, pair, runs = _without_next_steps(
        snapshot, change, conditions, progress, command_log, logging
    )
    if not conditions.next_steps or _is_bare(pair, answer.effect):
        return answer
    if on_verdict is not None:
        on_verdict(answer)
    return _with_next_steps(answer, pair, snapshot, conditions, runs, progress)


def _without_next_steps(
    snapshot: Snapshot,
    change: ClusterChange,
    conditions: Conditions,
    progress: Progress,
    command_log: CommandLog | None,
    logging: Logging | None,
) -> tuple[WhatIfAnswer, ExperimentPair, RunPair]:
    """Return the answer without next steps, and the experiments and runs that lead to it."""
    _check_arguments(snapshot, change, conditions)
    stated = _stated_runtimes(conditions)
    pair = experiments_of(snapshot, change, conditions)
    runs = run_pair(
        pair.without,
        pair.changed,
        progress,
        command_log,
        logging,
        keeps_start=conditions.next_steps and _gains_from_kept_start(change, conditions),
    )
    before, after = runs.before, runs.after
    effect = _effect(pair, snapshot, conditions, before, after)
    run_notes = notes_about(
        effect.changed.notes,
        effect.changed.pod_autoscalers,
        {one.workload for one in effect.workloads},
    )
    # First the reasons why pods waited, then what concerns the whole answer.
    causes = _waiting_notes(effect)
    unsettled = after.unsettled("--horizon")
    notes = [*causes, unsettled] if unsettled else [*causes]
    notes += _late_failure_note(change)
    notes += [
        *_overcommitted_note(before, after),
        *_type_note(after),
        *_drift_note(after),
        *_expiry_note(snapshot, before),
    ]
    notes += [*_held_by_budgets(after), *_failed_before_change(change, before)]
    notes += _failed_without_change(change, before)
    notes += _controller_notes(change, effect, snapshot)
    notes += [*pair.notes, *_scheduler_notes(change, conditions, effect)]
    notes += _autoscaled_before_change(before, pair.kept_nodes, effect.drain.nodes)
    notes += [*_lost_without_change(snapshot, before), *_displaced_without_change(before, after)]
    notes += [*_undrained_without_change(effect), *_no_room_in_quotas(effect)]
    notes += _refused_by_kubelets(before, after)
    notes += _order_note(pair, effect, runs, progress)
    known = _runtimes(snapshot, stated, after)
    starts = _start_times(snapshot, change, conditions, known, after, progress)
    notes += _runtime_notes(snapshot, conditions, known, after, starts)
    starts = starts if starts is not None and starts.draws else None
    notes += _unready_note(snapshot, effect)
    notes += _failing_note(pair, effect)
    notes += [*_health_note(effect), *_cron_job_note(pair.cron_jobs, after)]
    notes += _stopped_autoscaler_note(snapshot, effect)
    notes += [*_dump_notes(snapshot, conditions), *run_notes]
    if not change.words:
        notes += _notes_without_change(conditions, before, snapshot)
    notes += _startup_note(pair, effect, conditions)  # last: it rarely makes an answer wrong
    effect = replace(effect, changed=replace(effect.changed, notes=tuple(dict.fromkeys(notes))))
    verdict = verdict_of(effect)
    others = _other_seeds(pair, snapshot, change, conditions, progress)
    outcomes = [seed_outcome(effect, verdict), *others]
    answer = WhatIfAnswer(
        source=snapshot.source,
        change=change,
        seed=conditions.seed,
        releases=pair.changed.followed,
        scheduler_config=conditions.config or "",
        scheduler_plugins=tuple(map(plugin_text, conditions.plugin)),
        batch_config=conditions.batch.source or ("" if pair.without.batch is None else FAIRLEAD),
        effect=effect,
        verdict=_with_assumed_rules(verdict, pair, snapshot, change, conditions, after),
        seeds=len(outcomes),
        certainty=certainty(outcomes) if len(outcomes) > 1 else (),
        start_times=starts,
        causes=causes,
        returned=tuple(pair.failed_nodes),
    )
    return answer, pair, runs


def _gains_from_kept_start(change: ClusterChange, conditions: Conditions) -> bool:
    """Return whether the run with `change` should take place in a forked process.

    Failed nodes change so much that sending the outcome takes as long as loading the cluster again.
    The output and the state of users' plugins would be lost with the forked process.
    """
    has_plugins = conditions.plugin or conditions.batch.plugins or change.new_plugin
    return not (change.failures.is_any or has_plugins)


def _with_assumed_rules(
    verdict: Verdict,
    pair: ExperimentPair,
    snapshot: Snapshot,
    change: ClusterChange,
    conditions: Conditions,
    after: RunOutcome,
) -> Verdict:
    """Return `verdict`; if it depends on assumed batch rules, its first sentence says so.

    The verdict depends on these rules only if pods of the batch scheduler were bound or wait.
    """
    if pair.without.batch is None or change.new_batch_config:
        return verdict
    assumed = assumed_rules(conditions.batch, pair.without.batch, snapshot.manifests)
    if assumed is None or after.scheduler_names.isdisjoint(assumed.names):
        return verdict
    first, *others = verdict.findings
    sentence = f"{first.sentence} {assumed.sentence}"
    findings = (replace(first, sentence=sentence), *others)
    return replace(verdict, findings=findings, assumption=assumed.sentence)


def _is_bare(pair: ExperimentPair, effect: Effect) -> bool:
    """Return whether `effect` shows no change and no open work; then there are no next steps."""
    is_done = not (effect.drain.nodes or pair.awaited or effect.shortages_of_both)
    return effect.is_none and is_done


def _held_by_budgets(after: RunOutcome) -> tuple[str, ...]:
    """Return the note about nodes that Karpenter may remove only later, or ()."""
    return () if after.autoscaling is None else after.autoscaling.awaited_budget_notes


def _controller_notes(change: ClusterChange, effect: Effect, snapshot: Snapshot) -> Iterator[str]:
    """Yield notes about controllers that are not simulated and that the change concerns.

    If there is no change, yield the notes about all controllers of the dump that are not simulated.
    """
    workloads = (one.workload for one in effect.workloads)
    lost = frozenset((one.object_kind, one.namespace, one.name) for one in workloads)
    yield from kueue_notes(snapshot.manifests, lost if change.words else None)
    if not any(map(_has_unusual_owner, samples(snapshot.manifests))):
        return
    # Imported only if it is needed.
    from fairlead.whatif.snapshot.unsimulated_controller import (  # noqa: PLC0415
        LostPods,
        unsimulated_controllers,
    )

    lost_pods = LostPods(lost, frozenset(one.pdb for one in effect.budgets))
    yield from unsimulated_controllers(snapshot.manifests, lost_pods if change.words else None)


def _has_unusual_owner(manifest: Manifest) -> bool:
    """Return whether `manifest` has an unusual owner.

    Unusual owners are custom resources, Pods, and Deployments that own pods directly.
    """
    programs = (POD.kind, DEPLOYMENT.kind) if manifest.kind is POD else (POD.kind,)
    return any(
        is_custom(owner.api_version) or owner.kind in programs
        for owner in manifest.metadata.owner_references
    )


def _with_next_steps(
    answer: WhatIfAnswer,
    pair: ExperimentPair,
    snapshot: Snapshot,
    conditions: Conditions,
    runs: RunPair,
    progress: Progress,
) -> WhatIfAnswer:
    """Search for the next steps of `answer`; return it with the steps, causes and notes found.

    `runs` are the runs of `pair`.
    """
    from fairlead.whatif.next_steps.next_steps import next_steps  # noqa: PLC0415 - after an effect

    recurrences_max = len(answer.changed.recurrences) + _MORE_RECURRENCES_MAX
    found = next_steps(
        answer,
        snapshot.manifests,
        lambda progress: _AskAgain(snapshot, conditions, runs, recurrences_max, progress).effect,
        progress,
        scheduler=pair.changed.scheduler,
        arguments=with_scheduler_arguments(snapshot, conditions).arguments,
        awaited=pair.awaited,
        written=pair.written,
        in_one_process=bool(pair.changed.scheduler.extenders),
    )
    causes, effect = (*answer.causes, *found.causes), answer.effect
    if found.notes or found.causes:
        every = dict.fromkeys((*causes, *effect.changed.notes, *found.notes))
        changed = replace(effect.changed, notes=tuple(every))
        effect = replace(effect, changed=changed)
    return replace(answer, effect=effect, next_steps=found.steps, causes=causes)


def _check_arguments(snapshot: Snapshot, change: ClusterChange, conditions: Conditions) -> None:
    """Raise InputError if an argument of `what_if` has a wrong type.

    Also raise InputError if there are too many seeds.
    """
    require_type("what_if", "snapshot", snapshot, Snapshot)
    require_type("what_if", "change", change, ClusterChange)
    require_type("what_if", "conditions", conditions, Conditions)
    check_seeds(conditions.seeds)


class _AskAgain(Struct, frozen=True):
    """Asks about another change of `snapshot`; `runs` are the runs without and with the change."""

    snapshot: Snapshot
    conditions: Conditions
    runs: RunPair
    recurrences_max: int
    progress: Progress

    def effect(self, change: ClusterChange) -> Effect | None:
        """Return the effect of `change` with the first seed.

        Return None if `change` is invalid, or if preemptions and evictions repeat more than
        `recurrences_max` times. If pods preempt one another until the horizon, the simulation can
        take minutes.
        """
        before = self.runs.before
        try:
            pair = experiments_of(self.snapshot, change, self.conditions)
            changed = pair.changed
            if changed.steps_begin is None:
                changed = replace(changed, steps_begin=before.rest.after or 0)
            changed = replace(
                changed,
                known_failures=before.failed_nodes,
                recurrences_max=self.recurrences_max,
            )
            # No name for the phase: the progress display shows the phase that `next_steps` began.
            outcome = self.runs.outcome_of(changed, "", self.progress)
        except InputError:
            return None
        if len(outcome.recurrences) > self.recurrences_max:
            return None
        return effect_of(before, outcome, _drain_of(pair, outcome))


def _dump_notes(snapshot: Snapshot, conditions: Conditions) -> Iterator[str]:
    """Yield the notes about the dump; they are the same for every change and every seed."""
    yield from unreadable_notes(snapshot.unreadable)
    yield from configuration_note(snapshot.manifests, conditions.config or "")
    yield from dump_notes(snapshot)


def _unready_note(snapshot: Snapshot, effect: Effect) -> list[str]:
    """Return a note about displaced pods whose containers are not ready in the dump."""
    found = effect.difference
    again = {pod.key for pod in (*found.displaced, *found.recreated)}
    ends = map(effect.changed.pods.get, unready_pods(snapshot.manifests, again))
    started = [one.key for one in ends if one is not None and one.started_at is not None]
    return [unready_note(started)] if started else []


def _failing_note(pair: ExperimentPair, effect: Effect) -> list[str]:
    """Return a note about new pods whose revision fails to start in the dump."""
    found = effect.difference
    new = (*found.displaced, *found.recreated, *found.placed, *(one.pod for one in found.updated))
    ends = (effect.changed.pods.get(pod.key, pod) for pod in new)
    words = pair.kubelets.failing.note({(one.workload, one.revision) for one in ends})
    return [words] if words else []


def _late_failure_note(change: ClusterChange) -> Iterator[str]:
    """Yield a note about the times in the answer if --at delays the failure of nodes."""
    at = change.failures.at
    if change.failures.is_any and at and read_duration(at):
        yield (
            'Times such as "after 30m" count from the beginning of the change. The nodes fail '
            f"{at} later."
        )


def _health_note(effect: Effect) -> list[str]:
    """Return a note if budgets count pods as healthy that are not ready for their workloads.

    Budgets count the pods of a failed node until the node is marked not ready. Budgets count the
    pods of a deleted node until pod garbage collection deletes the pods.
    """
    lowest: dict[str, int] = {}
    for one in effect.workloads:
        for pdb, _ in one.budgets:
            lowest[pdb] = lowest.get(pdb, 0) + one.readiness.lowest
    differs = any(lowest.get(one.pdb, 0) < one.lowest_healthy for one in effect.budgets)
    changed = effect.changed
    if changed.outage is not None:
        pods = "pods of failed nodes until these nodes are marked not ready"
    elif changed.on_deleted_nodes:
        pods = "pods of deleted nodes until pod garbage collection deletes these pods"
    else:
        return []
    note = (
        f"The lowest number of healthy pods of a budget includes {pods}: the disruption controller "
        "counts them. The lowest number of ready pods of a workload does not include them."
    )
    return [note] if differs else []


def _cron_job_note(cron_jobs: Sequence[Manifest], changed: RunOutcome) -> Iterator[str]:
    """Yield a note about the `cron_jobs` that are due between the change and the end of the run."""
    if not cron_jobs:
        return
    from fairlead.whatif.snapshot.due_cron_job import due_cron_job_notes  # noqa: PLC0415

    start, end = changed.started_at, changed.ended_at
    during = f"Within the simulated {for_readers(end - start)}"
    yield from due_cron_job_notes(cron_jobs, start, end, during)


def _waiting_notes(effect: Effect) -> tuple[str, ...]:
    """Return notes that say why pods waited although the node autoscaler could add nodes."""
    run = effect.changed
    return () if run.autoscaling is None else tuple(run.autoscaling.waiting_notes(run.started_at))


def _drift_note(after: RunOutcome) -> list[str]:
    """Return a note about drifted nodes that Karpenter has not replaced at the end."""
    drifted = list(after.autoscaling.drifted) if after.autoscaling is not None else []
    if not drifted:
        return []
    nodes = counted(len(drifted), "drifted node")
    return [f"At the end, Karpenter has not replaced {nodes}: {listed(drifted)}."]


def _overcommitted_note(before: RunOutcome, after: RunOutcome) -> Iterator[str]:
    """Yield a note about nodes that the change makes too small for the pods that run on them.

    upstream: kubelet.go: HandlePodAdditions; a kubelet that restarts admits all its pods again.
    """
    known = {one.name: one for one in before.nodes}
    found = {
        one.name: resources
        for one in after.nodes
        if (resources := one.overcommitted) and not known.get(one.name, one).overcommitted
    }
    if found:
        nodes = listed([f"{name} ({', '.join(resources)})" for name, resources in found.items()])
        have, kubelet = "the node has", "the kubelet restarts, it refuses"
        if len(found) > 1:
            have, kubelet = "these nodes have", "the kubelets restart, they refuse"
        yield (
            f"The pods on {nodes} request more than {have}. They keep running, but if {kubelet} "
            "pods that do not fit."
        )


def _type_note(after: RunOutcome) -> Iterator[str]:
    """Yield a note about NodePools whose requirements no instance type meets.

    Karpenter creates no nodes from these NodePools.
    """
    pools = {} if after.autoscaling is None else after.autoscaling.pools_without_types
    if pools:
        which, them = ("NodePool", "it") if len(pools) == 1 else ("NodePools", "them")
        by_min_values = any("minValues" in text for text in pools.values())
        also = " and minValues" if by_min_values else ""
        yield (
            f"No instance type meets the requirements{also} of {which} {listed(sorted(pools))}, so "
            f"Karpenter creates no nodes from {them}."
        )


def _expiry_note(snapshot: Snapshot, before: RunOutcome) -> Iterator[str]:
    """Yield a note about expired nodes, which Karpenter deletes even without the change.

    If the dump lacks the NodeClaim of a node, the expireAfter of the NodePool is assumed. The note
    states the number of such nodes. `before` is the run without the change.
    """
    found = before.autoscaling
    gone = () if found is None else (*found.earlier, *found.transitions)
    expired = {one.node for one in gone if one.has_expired}
    if not expired:
        return
    claims = (one for one in samples(snapshot.manifests) if one.kind.kind == "NodeClaim")
    unclaimed = expired - {text(one.value, "status", "nodeName") for one in claims}
    nodes = (one.ref.name for one in samples(snapshot.manifests) if one.kind is NODE)
    own = unclaimed.intersection(nodes)
    which = "expires" if len(expired) == 1 else "expire"
    assumed = (
        f" The dump has no NodeClaims of {len(own):,} of them, so expireAfter of their NodePool "
        "is assumed."
        if own
        else ""
    )
    yield (
        f"In both runs, {counted(len(expired), 'node')} {which} (expireAfter). Karpenter deletes "
        f"an expired node without waiting for a new node.{assumed}"
    )


def _stopped_autoscaler_note(snapshot: Snapshot, effect: Effect) -> Iterator[str]:
    """Yield a note if the pods of the simulated autoscaler itself are not ready for a time."""
    if effect.changed.autoscaling is None:
        return
    # Imported only if an autoscaler is simulated.
    from fairlead.whatif.outcome.autoscaling.stopped_autoscaler import (  # noqa: PLC0415
        stopped_autoscaler_notes,
    )

    name = effect.changed.autoscaling.autoscaler
    workloads = {one.workload: one.readiness for one in effect.workloads}
    yield from stopped_autoscaler_notes(name, snapshot.manifests, workloads)


def _failed_before_change(change: ClusterChange, without: RunOutcome) -> list[str]:
    """Return a note about --fail-node nodes that are out of service without the change, or []."""
    named = {name.removeprefix(f"{HOSTNAME}=") for name in change.failures.fail_node}
    found = sorted(named & without.failed_nodes)
    if not found:
        return []
    was, their = ("was", "Its") if len(found) == 1 else ("were", "Their")
    note = (
        f"{listed(found)} {was} out of service before the change. {their} pods are evicted in both "
        "runs, so this answer does not contain these evictions. --commands FILE writes them and "
        "the nodes of the new pods."
    )
    return [note]


def _failed_without_change(change: ClusterChange, without: RunOutcome) -> list[str]:
    """Return a note that suggests --fail-node; [] if there is a change or no failed node.

    The result is also [] if the cluster has a node autoscaler. With an autoscaler, --fail-node
    would show no difference, because the node would be out of service in both runs.
    """
    if change.words or not without.failed_nodes or without.autoscaling is not None:
        return []
    note = (
        f"--fail-node {min(without.failed_nodes)} shows what happens if this node stays out of "
        "service, compared with its return."
    )
    return [note]


def _notes_without_change(
    conditions: Conditions, without: RunOutcome, snapshot: Snapshot
) -> Iterator[str]:
    """Yield notes on a question without a change: about the load, and about pending pods."""
    if conditions.load is not None:
        yield _LOAD_IN_BOTH_RUNS
    if without.pending:
        words = with_scheduler_arguments(snapshot, conditions).question_arguments
        yield f"fairlead explain {shlex.join(words)} pods says why pods are pending."


def _autoscaled_before_change(
    without: RunOutcome, kept: Sequence[str], drained: Sequence[str]
) -> list[str]:
    """Return a note about nodes that the autoscaler changed before the cluster came to rest.

    `kept` are the nodes that the user's change names. The autoscaler does not remove them before
    this change is made. `drained` are the nodes of the dump that the change drains. If the change
    selects such a node only by a label, the autoscaler may have removed the node before the change.
    """
    found = without.autoscaling
    if found is None or not found.earlier:
        return []
    # Imported only if it is needed.
    from fairlead.whatif.outcome.autoscaling.node_group import transition_words  # noqa: PLC0415

    gone = {one.node for one in found.earlier if not one.came}
    kept = [name for name in kept if name not in gone]
    what = f"{found.autoscaler} {transition_words(found.earlier)}"
    note = f"Before the change is made, {what}; all numbers count from the change."
    if kept and gone:
        note += f" Until then, it keeps {listed(kept)}, which the change names."
    undrained = [one for one in found.earlier if not one.came and one.node in drained]
    if undrained:
        why = "To keep such a node until the change, name it in --drain instead of its label"
        if all(one.has_expired for one in undrained):
            why = f"{'It has' if len(undrained) == 1 else 'They have'} expired"
        note += f" The change was to drain {len(undrained):,} of the removed nodes. {why}."
    return [note]


def _lost_without_change(snapshot: Snapshot, without: RunOutcome) -> list[str]:
    """Return a note about pods without a controller that are lost without the change, or []."""
    gone = (without.touched or frozenset()) - without.pods.keys()
    if not gone:
        return []
    # Pods that were already terminating in the dump are not lost because of the run.
    lone = matching_pods(
        snapshot.manifests,
        lambda pod: controller_of(pod.metadata) is None and not is_terminating(pod),
    )
    lost = sorted(one.ref.key for one in lone if one.ref.key in gone)
    if not lost:
        return []
    verb = "is" if len(lost) == 1 else "are"
    what = f"{counted(len(lost), 'pod')} without a controller {verb} evicted or preempted"
    return [f"Without the change, too, {what} and gone for good: {listed(lost)}."]


def _undrained_without_change(effect: Effect) -> list[str]:
    """Return a note for each node that is being deleted, but keeps pods in both runs."""
    shown = {one.pod.key for one in effect.changed.undrained}
    by_node: dict[str, list[Undrained]] = {}
    for one in effect.without.undrained:
        if one.pod.key not in shown:
            by_node.setdefault(one.pod.node, []).append(one)
    return [
        f"Without the change, too, {node} is not drained, because {counted(len(found), 'pod')} on "
        f"it {'stays' if len(found) == 1 else 'stay'} ({found[0].pod.key}: "
        f"{found[0].why.rstrip('.').replace('. (', ' (')})."
        for node, found in by_node.items()
    ]


def _no_room_in_quotas(effect: Effect) -> Iterator[str]:
    """Yield a note for each quota that admits replacements of pods, but no additional pods."""
    found = [one for one in effect.refused_workloads if not one.replacements_refused]
    for reason, rows in by_reason(found).items():
        which = listed([str(one.workload) for one in rows], 3)
        they = "this workload" if len(rows) == 1 else "these workloads"
        yield (
            f"Pods of {which} can still be replaced, but one more pod is refused: {reason}. So "
            f"{they} cannot grow, and a rolling update cannot add a pod before it removes one."
        )


def _displaced_without_change(without: RunOutcome, changed: RunOutcome) -> list[str]:
    """Return a note about controlled pods that are evicted or preempted in both runs, or []."""
    before, after = (
        {one.pod.key: one.pod.workload for one in (*run.preempted, *run.evicted)}
        for run in (without, changed)
    )
    found = Counter(ref for key, ref in before.items() if key in after and ref.kind != POD.kind)
    if not found:
        return []
    number = found.total()
    verb = "is" if number == 1 else "are"
    named = listed([f"{count:,} of {ref}" for ref, count in sorted(found.items())], 5)
    what = f"{counted(number, 'pod')} {verb} preempted or evicted"
    return [f"Without the change, too, {what}: {named}."]


def _refused_by_kubelets(without: RunOutcome, changed: RunOutcome) -> list[str]:
    """Return a note about new pods that kubelets refused, for example on full nodes, or []."""
    refused = [
        f"{one.key} ({one.node})"
        for one in changed.pods.values()
        if one.phase == "Failed"
        and one.node
        and one.started_at is None
        and not one.is_initial
        and one.key not in without.pods
    ]
    if not refused:
        return []
    if len(refused) == 1:
        return [
            f"1 new pod does not run, because the kubelet of its node refused it: {refused[0]}."
        ]
    what = f"{counted(len(refused), 'new pod')} do not run"
    return [f"{what}, because the kubelets of their nodes refused them: {listed(refused)}."]


def _effect(
    pair: ExperimentPair,
    snapshot: Snapshot,
    conditions: Conditions,
    without: RunOutcome,
    changed: RunOutcome,
) -> Effect:
    """Return the effect of the change; with --reschedule, also set its `packing`.

    Raises InputError.
    """
    if pair.failed_nodes:
        changed = _compared_with_return(without, changed)
    drain = _drain_of(pair, changed)
    if not pair.is_rescheduled:
        return replace(effect_of(without, changed, drain), unsimulated=pair.unsimulated)
    # Starts of rescheduled pods are not activity that was under way in the dump.
    under_way = tuple(one for one in without.rest.activities if one.created or one.deleted)
    without = replace(without, rest=replace(without.rest, activities=under_way))
    effect = effect_of(without, changed, drain)
    return replace(effect, packing=_packing(snapshot, conditions, effect))


def _drain_of(pair: ExperimentPair, changed: RunOutcome) -> KubectlDrain:
    """Return the result of kubectl's checks of the drained nodes in the run `changed`.

    If the run ended before the drain, the result is about the pods of the dump.
    """
    drain = changed.kubectl_drain if changed.kubectl_drain.nodes else pair.drain
    return with_daemon_set_pods(drain, _created_daemon_set_pods(drain.nodes, changed))


def _created_daemon_set_pods(drained: Iterable[str], changed: RunOutcome) -> Iterator[str]:
    """Yield the keys of the pods of DaemonSets on `drained` nodes that the run `changed` created.

    Pods of DaemonSets stay on their nodes during a drain.
    """
    names = frozenset(drained)
    for node in changed.nodes if names else ():
        for pod in node.pods if node.name in names else ():
            if not pod.is_initial and pod.workload.kind == DAEMON_SET.kind:
                yield pod.key


def _compared_with_return(without: RunOutcome, changed: RunOutcome) -> RunOutcome:
    """Return `changed`, corrected as if pods had been ready on the failed nodes before the change.

    Only the numbers of ready pods before the change are corrected. In the run `without` the
    change, the nodes that had failed before the run return to service. So in the result, the number
    of ready pods of a workload before the change is at least the number at the end of `without`.
    """
    workloads = {
        ref: replace(one, before=max(one.before, without.workloads[ref].at_end))
        if ref in without.workloads
        else one
        for ref, one in changed.workloads.items()
    }
    return replace(changed, workloads=workloads)


def _packing(snapshot: Snapshot, conditions: Conditions, effect: Effect) -> tuple[PackingRow, ...]:
    """Return measures of three placements: in the dump, and at the end of each of the two runs.

    Raises InputError.
    """
    from fairlead.whatif.configuration.autoscaling.instance_type_file import (  # noqa: PLC0415
        read_instance_types,
    )
    from fairlead.whatif.configuration.autoscaling.node_price import price_of_labels  # noqa: PLC0415

    file = conditions.instance_types
    found = (one.node for one in snapshot.manifests if one.kind is NODE)
    nodes = sorted(found, key=name_of_node)
    known = {one.name: one for one in ([] if file is None else read_instance_types(file, nodes))}
    return packing(
        nodes_in(snapshot.manifests),
        effect.without.nodes,
        effect.changed.nodes,
        lambda node: price_of_labels(known, node.labels),
    )


def _scheduler_notes(
    change: ClusterChange, conditions: Conditions, effect: Effect
) -> Iterator[str]:
    """If the user's scheduler configuration or plugins made no difference, yield notes on why."""
    if not effect.difference.is_empty:
        return
    is_named = bool(conditions.config or conditions.plugin or conditions.batch.source)
    if is_named and not replace(change, reschedule="").words:
        yield IN_BOTH_RUNS
    elif not change.changes_scheduler:
        return
    if not change.reschedule and effect.changed.placed:
        yield PODS_STAY


def waiting_starts(
    snapshot: Snapshot, conditions: Conditions, progress: Progress | None = None
) -> StartTimes | None:
    """Return when the waiting pods of `snapshot` would start if the cluster were not changed.

    The times count from the snapshot. Return None if no pod waits, or if `conditions` has one seed
    and no file of runtimes. If no running pod has a known runtime, the result is empty, and its
    `words` say so. Raises InputError.
    """
    check_seeds(conditions.seeds)
    stated, progress = _stated_runtimes(conditions), progress or NoProgress()
    experiment = replace(
        experiments_of(snapshot, ClusterChange(), conditions).without, steps_begin=0
    )
    outcome = run_experiment(experiment, UNCHANGED, progress).outcome
    known = _runtimes(snapshot, stated, outcome)
    return _start_times(snapshot, ClusterChange(), conditions, known, outcome, progress)


def _stated_runtimes(conditions: Conditions) -> tuple[StatedRuntime, ...]:
    """Return the runtimes in the file of --runtimes. Raises InputError."""
    if conditions.runtimes is None:
        return ()
    from fairlead.whatif.run.pod_timing.runtime_file import read_runtimes  # noqa: PLC0415

    return read_runtimes(conditions.runtimes)


def _runtimes(
    snapshot: Snapshot, of_file: tuple[StatedRuntime, ...], outcome: RunOutcome
) -> Runtimes:
    """Return the runtimes `of_file`; if pods wait at the end of the run, add those in the dump."""
    if not any(one.until is None for one in outcome.waits):
        return Runtimes(of_file)
    return runtimes_in(snapshot.manifests, of_file)


def _start_times(
    snapshot: Snapshot,
    change: ClusterChange,
    conditions: Conditions,
    known: Runtimes,
    after: RunOutcome,
    progress: Progress,
) -> StartTimes | None:
    """Return the simulated start times of the pods that wait at the end of `after`.

    Return None if no pod waits, or if --seeds is 1 and --runtimes is not given. If no running pod
    has a known runtime, the result is empty. If --seeds is 1 and --runtimes is given,
    `DRAWS_DEFAULT` seeds are used.
    """
    if not any(one.until is None for one in after.waits):
        return None
    if conditions.seeds == 1 and conditions.runtimes is None:
        return None
    covered = coverage(known, snapshot.manifests, snapshot.taken_at)
    if not covered.known:
        return StartTimes(
            draws=0, running=covered.running, known=0, stated=0, look_ahead=0, rows=()
        )
    from fairlead.whatif.run.start_time import start_times  # noqa: PLC0415 - rarely needed

    draws = conditions.seeds if conditions.seeds > 1 else DRAWS_DEFAULT
    experiments = [
        _rearranged(
            experiments_of(snapshot, change, replace(conditions, seed=seed)).changed, number
        )
        for number, seed in enumerate(range(conditions.seed, conditions.seed + draws))
    ]
    return start_times(experiments, after, known, covered, progress)


def _runtime_notes(
    snapshot: Snapshot,
    conditions: Conditions,
    known: Runtimes,
    after: RunOutcome,
    starts: StartTimes | None,
) -> Iterator[str]:
    """Yield notes about the basis of the start times and about stated runtimes that match no pod.

    If `starts` is None although start times could be estimated, a note says to use --seeds. If no
    start time can be estimated and --runtimes is given, a note says why. If only --seeds is given,
    there is no such note, because the user may not want start times.
    """
    if starts is not None:
        if starts.draws or conditions.runtimes is not None:
            yield starts.words
    elif (count := sum(one.until is None for one in after.waits)) and known.is_given:
        covered = coverage(known, snapshot.manifests, snapshot.taken_at)
        if covered.known:
            waits, its = ("pod waits", "its start time") if count == 1 else _MANY_WAIT
            yield (
                f"{count:,} {waits} at the end. --seeds 20 estimates {its}, because "
                f"{covered.known:,} of {covered.running:,} running pods have a known runtime."
            )
    if unused := unmatched(known, snapshot.manifests):
        more = f" and {len(unused) - 1:,} more" if len(unused) > 1 else ""
        yield f"No pod of the dump matches {unused[0].subject}{more} of --runtimes."


def _other_seeds(
    first: ExperimentPair,
    snapshot: Snapshot,
    change: ClusterChange,
    conditions: Conditions,
    progress: Progress,
) -> Iterator[SeedOutcome]:
    """Return the outcomes of all seeds except the first; the seed decides the order of arrival.

    `first` are the experiments with the first seed.
    """
    if conditions.seeds == 1:
        return iter(())
    from fairlead.whatif.run.parallel.independent_run import independent_runs  # noqa: PLC0415 - rarely needed

    def outcome(index: int, progress: Progress) -> SeedOutcome:
        number = index + 1  # the first seed has the number 0
        seed = conditions.seed + number
        pair = experiments_of(snapshot, change, replace(conditions, seed=seed))
        changed = _rearranged(pair.changed, number)
        runs = run_pair(pair.without, changed, progress)
        effect = _effect(pair, snapshot, conditions, runs.before, runs.after)
        return seed_outcome(effect, verdict_of(effect))

    names = [f"seed {number} of {conditions.seeds}" for number in range(2, conditions.seeds + 1)]
    has_extenders = bool(first.changed.scheduler.extenders)
    return independent_runs(outcome, names, progress, in_one_process=has_extenders)


def _rearranged(experiment: Experiment, number: int) -> Experiment:
    """Return a copy of `experiment` that shuffles the objects that arrive at the same instant.

    The experiment's seed decides the order. In the first experiment (`number` 0), the objects keep
    their order.
    """
    if number == 0:
        return experiment
    order = partial(shuffled, seed=experiment.seed, purpose=_ARRIVAL)
    return replace(experiment, steps=rearranged(experiment.steps, order))


def _order_note(
    pair: ExperimentPair, effect: Effect, runs: RunPair, progress: Progress
) -> Iterator[str]:
    """Yield a note if the order of objects that arrive at one instant changes the outcome.

    The function simulates the change again with these objects in reverse order, and compares the
    outcomes. The second simulation happens only if pods are preempted, stay pending or cannot be
    created in `effect`. If there are no such pods, pods do not compete for room or quotas. `runs`
    are the runs of `pair`.
    """
    groups = arriving_together(pair.changed.steps)
    found = effect.difference
    is_short = bool(found.preempted or found.pending or found.not_created)
    if not groups or not (is_short or any(one.missing for one in effect.workloads)):
        return
    changed = replace(
        pair.changed,
        steps=rearranged(pair.changed.steps, lambda group: group[::-1]),
        steps_begin=effect.without.rest.after or 0,
        known_failures=effect.without.failed_nodes,
    )
    other = effect_of(effect.without, runs.outcome_of(changed, REVERSED, progress))
    first = seed_outcome(effect, verdict_of(effect))
    words = order_matters(first, seed_outcome(other, verdict_of(other)))
    if words:
        count = sum(map(len, groups))
        yield (
            f"{count} objects arrive at one instant, and the outcome depends on their order: in "
            f"reverse order, {words}. --seeds 20 tries other orders."
        )


def _startup_note(pair: ExperimentPair, effect: Effect, conditions: Conditions) -> Iterator[str]:
    """Yield a note about the time that pods take to become ready, if the change starts any pods."""
    found = effect.difference
    updated = (one.pod for one in found.updated)
    pods = (*found.displaced, *found.elsewhere, *found.placed, *found.completed, *updated)
    if pods and conditions.startup is not None:
        after = for_readers(conditions.startup)
        yield f"Every pod becomes ready {after} after it is scheduled (--startup-time)."
    elif pods:
        started = {one.workload for one in pods}
        yield pair.kubelets.times.words_for(started, has_stages=pair.kubelets.has_stages)
