"""Runs `fairlead explain` and prints verdicts, scores and preemption candidates."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace
from rich.console import Console

from fairlead.api.json import Json
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import HORIZONTAL_POD_AUTOSCALER, POD
from fairlead.cli import exit_code
from fairlead.cli.commands.explain.group import print_group
from fairlead.cli.commands.explain.refused_table import RefusedNode, print_refused
from fairlead.cli.options.connection import (
    BOTH_SOURCES,
    ConnectionOptions,
    is_kubectl_plugin,
    snapshot_of,
)
from fairlead.cli.options.output import AnswerFormat
from fairlead.cli.options.parameter import Names
from fairlead.cli.output.console.progress_bar import ProgressBar
from fairlead.cli.output.console.step import print_step
from fairlead.cli.output.console.terminal import (
    print_line,
    print_table,
    stdout_console,
    table_width,
)
from fairlead.cli.output.result_file import print_bytes, print_notice
from fairlead.cli.output.summary.start_time import start_time_section
from fairlead.cli.output.tabular_answer import print_tabular
from fairlead.engine.configuration.release import Release
from fairlead.engine.core.status import Code, Status
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.evaluation import Evaluation, PreemptionEvaluation, RoomEvaluation
from fairlead.engine.scheduling.preemption.default_preemption import NAME as DEFAULT_PREEMPTION
from fairlead.whatif.conditions import (
    SEEDS_MAX,
    Conditions,
    with_scheduler_arguments,
)
from fairlead.whatif.configuration.batch.batch_config import batch_config, with_job_schedulers
from fairlead.whatif.configuration.batch.options import SINGLE_PODS, BatchOptions
from fairlead.whatif.configuration.release import NO_CHOICE, ReleaseChoice, Releases, read_release
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.configuration.stored_configuration import chosen_configuration
from fairlead.whatif.configuration.user_plugin import UserPlugins
from fairlead.whatif.explain.group import (
    ExplainedGroup,
    explain_group_of,
    group_explanation_json,
    is_about_group,
    waiting_member,
)
from fairlead.whatif.explain.pod import Explanation, explain_new_pod, explain_pod, explanation_json
from fairlead.whatif.explain.pod_group import NewNodesForGroup
from fairlead.whatif.explain.rival import NODES_MAX as COPIES_MAX
from fairlead.whatif.explain.target import (
    explain_object,
    group_of_owner,
    group_to_explain,
    new_pod_to_explain,
    refused_pods,
    target_in_namespace,
)
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.start_time import StartTimes
from fairlead.whatif.planner.baseline import read_baseline
from fairlead.whatif.planner.refusal import REMEDIES_MAX, NewNode
from fairlead.whatif.question import waiting_starts
from fairlead.whatif.result.effect_json import start_times_json
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.snapshot.absent_owner import with_absent_owners
from fairlead.whatif.snapshot.live.live_resource import unreadable_notes
from fairlead.whatif.snapshot.snapshot import PLACEHOLDER, Snapshot

NAMES_MAX = 10
NODES_MAX = 20  # more nodes are grouped by reason
BEST_MAX = 10  # rows to print if there are more than NODES_MAX feasible nodes
_START_COLUMNS: Final = (
    ResultColumn("subject", "waiting", NAME),
    ResultColumn("pods", "pods", NUMBER),
    ResultColumn("p10_s", "10%", SECONDS),
    ResultColumn("p50_s", "median", SECONDS),
    ResultColumn("p90_s", "90%", SECONDS),
    ResultColumn("started", "simulations that start it", NUMBER, rank=1),
)


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """The arguments of one explanation.

    `target` is the object to explain. `apply` contains the files of --apply. If `target` is "", the
    only pod or workload in these files is explained. `batch` is (--batch-config, --batch-plugin).
    """

    target: str
    snapshot: str | None
    connection: ConnectionOptions
    max_input: int | None
    namespace: str = ""
    config: str | None = None
    plugins: Names = ()
    batch: tuple[str | None, Names] = (None, ())
    release: ReleaseChoice = NO_CHOICE
    allow_extenders: bool = False
    apply: Names = ()
    seeds: int = 1
    runtimes: str | None = None


def snapshot_and_target(
    first: str | None,
    second: str | None,
    snapshot: str | None,
    connection: ConnectionOptions,
    apply: Names,
) -> tuple[str | None, str]:
    """Return (snapshot, object to explain); the snapshot is None for a running cluster.

    `first` and `second` are the positional arguments of the command. An argument that was not given
    is None. `apply` contains the files of --apply. If the user names no object, the second part of
    the result is "", and the object to explain is in the files of --apply.

    Raises InputError.
    """
    has_source = snapshot is not None or connection.is_given
    if second is not None:
        is_file = first == "-" or Path(first or "").exists()
        if has_source and is_file and snapshot is None:
            raise InputError("arguments", BOTH_SOURCES)
        if has_source:
            extra, problem = (
                (first or "", "is one argument too many: --snapshot is given already")
                if is_file
                else (second, "is one argument too many: the command explains one object")
            )
            raise InputError(extra, problem)
        if not is_file and Path(second).exists():
            problem = f"the dump comes first: fairlead explain {second} {first}"
            raise InputError("arguments", problem)
        return first, second
    if first is not None and apply and not has_source:
        return first, ""
    if first is None and not apply:
        raise InputError("arguments", "name an object, such as pod/store/web-0")
    is_object = is_kubectl_plugin() and not Path(first or "").exists()
    if not has_source and not is_object:
        if first is not None and Path(first).exists():
            problem = f"name an object, too, for example: fairlead explain {first} pods"
            raise InputError("arguments", problem)
        missing = "a dump (SNAPSHOT), or a cluster, and an object: dump.yaml pods, for example"
        raise InputError("arguments", f"name {missing}")
    return snapshot, first or ""


def explain_target(request: ExplainRequest, *, output: AnswerFormat, all_nodes: bool) -> int:
    """Explain an object and print the explanation; return the exit code. Raises InputError."""
    release, target = read_release(request.release), request.target
    with _phase("reading") as progress:
        snapshot = snapshot_of(request.snapshot, request.connection, request.max_input, progress)
    scheduler = _scheduler(request, snapshot, release)
    # Checked even if the explanation does not need the batch scheduler.
    if any(request.batch) and request.batch[0] != SINGLE_PODS:
        batch_config(BatchOptions(*request.batch), scheduler, snapshot.manifests)
    releases = Releases(release, release).with_gates(scheduler.gates)
    if not 1 <= request.seeds <= SEEDS_MAX:
        raise InputError("--seeds", f"{request.seeds} is not from 1 to {SEEDS_MAX}")
    wants_starts = request.seeds != 1 or request.runtimes is not None
    if request.apply:
        if wants_starts:
            problem = (
                "cannot be combined with --apply; fairlead whatif --apply estimates when new pods "
                "start"
            )
            raise InputError(_starts_option(request), problem)
        words = _arguments(snapshot, request, release)
        return _explain_new(
            request, snapshot, scheduler, releases, output, words, all_nodes=all_nodes
        )
    target = target_in_namespace(target, request.namespace, snapshot)
    target = group_of_owner(target, snapshot)
    target = waiting_member(snapshot, target, scheduler) or target
    snapshot = with_absent_owners(snapshot, target)
    snapshot = _with_pods(snapshot, scheduler, request.release)
    with _phase("explaining"):
        asked = with_scheduler_arguments(snapshot, _conditions(request, release))
        answer = explain_object(
            asked,
            target,
            scheduler,
            request.release,
            BatchOptions(*request.batch),
            request.namespace,
        )
    if answer is not None:
        if wants_starts:
            answer = _with_starts(answer, request, snapshot, release)
        print_tabular(answer, "details" if all_nodes and output == "text" else output)
        return exit_code.SUCCESS
    starts = _starts(request, snapshot, release) if wants_starts else None
    _print_unreadable(snapshot)
    batch = BatchOptions(*request.batch)
    if not is_about_group(target, snapshot, scheduler, batch):
        with _phase("explaining"):
            explanation = explain_pod(snapshot, target, scheduler)
        own = starts and starts.of([f"pod/{explanation.pod}"])
        words = _arguments(snapshot, request, release)
        return _print_pod(explanation, releases, output, words, all_nodes=all_nodes, starts=own)
    with _phase("explaining"):
        group = explain_group_of(snapshot, target, scheduler, batch)
    title = group.found.title
    own = starts and starts.of([f"podgroup/{title}", title[:1].lower() + title[1:]])
    return _print_group(group, releases, output, own)


def _explain_new(
    request: ExplainRequest,
    snapshot: Snapshot,
    scheduler: SchedulerConfig,
    releases: Releases,
    output: AnswerFormat,
    arguments: Sequence[str],
    *,
    all_nodes: bool,
) -> int:
    """Explain the new pod or pod group in the files of --apply. Raises InputError."""
    batch = BatchOptions(*request.batch)
    target, namespace = request.target, request.namespace
    gang = group_to_explain(snapshot, request.apply, target, scheduler, batch, namespace)
    if gang is not None:
        _print_unreadable(snapshot)
        with _phase("explaining"):
            group = explain_group_of(*gang, scheduler, batch)
        notes = (*group.notes, *refused_pods(snapshot, gang[0], scheduler))
        return _print_group(replace(group, notes=notes), releases, output)
    cluster, new = new_pod_to_explain(snapshot, request.apply, target, namespace)
    with _phase("explaining"):
        explanation = explain_new_pod(cluster, new, scheduler)
    _print_unreadable(snapshot)
    return _print_pod(explanation, releases, output, arguments, all_nodes=all_nodes)


@contextmanager
def _phase(name: str) -> Iterator[ProgressBar]:
    """Show a bar for the phase `name` during the `with` block."""
    with ProgressBar() as progress:
        progress.begin(name, 0)
        yield progress


def _starts(request: ExplainRequest, snapshot: Snapshot, release: Release) -> StartTimes | None:
    """Return the simulated start times of the waiting pods; see `waiting_starts`."""
    with ProgressBar() as progress:
        return waiting_starts(snapshot, _conditions(request, release), progress)


def _conditions(request: ExplainRequest, release: Release) -> Conditions:
    return Conditions(
        seeds=request.seeds,
        releases=Releases(release, release),
        config=request.config,
        plugin=request.plugins,
        allow_extenders=request.allow_extenders,
        batch=BatchOptions(*request.batch),
        runtimes=request.runtimes,
    )


def _with_starts(
    answer: TabularAnswer, request: ExplainRequest, snapshot: Snapshot, release: Release
) -> TabularAnswer:
    """Return `answer` with a table of the times at which the pending pods would start.

    If these times are unknown, a note is added instead of the table. If no pod of the explained
    workload is pending, `answer` is returned as it is. Raises InputError if `answer` explains an
    object that is not a workload.
    """
    if "workload" not in answer.facts:
        problem = "needs a pod, a workload or a pod group to explain"
        raise InputError(_starts_option(request), problem)
    starts = _starts(request, snapshot, release)
    if starts is None:
        return answer
    pending = next(one.rows for one in answer.tables if one.name == "pending")
    own = starts.of([answer.facts["workload"], *(f"pod/{row['pod']}" for row in pending)])
    if not starts.draws and pending:
        return replace(answer, notes=(*answer.notes, starts.words))
    if not own.rows:
        return answer
    found = start_times_json(own)
    table = ResultTable("start_times", "start times", _START_COLUMNS, found["start_times"])
    return replace(
        answer,
        tables=(*answer.tables, table),
        facts={**answer.facts, "start_times_basis": found["start_times_basis"]},
        notes=(*answer.notes, own.words),
    )


def _starts_option(request: ExplainRequest) -> str:
    return "--seeds" if request.runtimes is None else "--runtimes"


def _print_starts(starts: StartTimes | None) -> None:
    """Print the start times in `starts`, or why they are not estimated.

    Print nothing if no pod of the explained object waits.
    """
    if starts is None or (starts.draws and not starts.rows):
        return
    if starts.rows:
        section = start_time_section(starts)
        section.show(stdout_console(), section.most)
    print_line(stdout_console(), starts.words)


def _scheduler(request: ExplainRequest, snapshot: Snapshot, release: Release) -> SchedulerConfig:
    config = read_scheduler_config(
        request.config and chosen_configuration("--config", request.config, snapshot.manifests),
        UserPlugins(request.plugins),
        release,
        allow_extenders=request.allow_extenders,
    )
    return with_job_schedulers(config) if request.batch[0] == SINGLE_PODS else config


def _with_pods(snapshot: Snapshot, scheduler: SchedulerConfig, release: ReleaseChoice) -> Snapshot:
    """Return `snapshot`; if it has no pods, return a copy with the pods that its workloads need.

    A simulation creates these pods, and a note about them is printed on standard error. The
    simulation has no metrics, so it cannot compute the status of HorizontalPodAutoscalers. The
    result therefore contains the HorizontalPodAutoscalers as they are in `snapshot`. Raises
    InputError.
    """
    if any(one.kind is POD for one in snapshot.manifests):
        return snapshot
    with ProgressBar() as progress:
        base = read_baseline(snapshot, scheduler, release, progress)
    if base.snapshot is not snapshot:
        print_notice(base.created)
    kept = {
        one.identity: one for one in snapshot.manifests if one.kind is HORIZONTAL_POD_AUTOSCALER
    }
    found = tuple(kept.get(one.identity, one) for one in base.snapshot.manifests)
    return replace(base.snapshot, manifests=found)


def _print_unreadable(snapshot: Snapshot) -> None:
    for line in unreadable_notes(snapshot.unreadable):
        print_notice(line)


def _refuse_markdown(output: AnswerFormat) -> None:
    if output == "markdown":
        raise InputError("--output", "must be text, details or json for a pod or a pod group")


def _print_pod(
    explanation: Explanation,
    releases: Releases,
    output: AnswerFormat,
    arguments: Sequence[str],
    *,
    all_nodes: bool,
    starts: StartTimes | None = None,
) -> int:
    _refuse_markdown(output)
    if output == "json":
        found = start_times_json(starts) if starts else {}
        _print_json({**explanation_json(explanation), **releases.as_json(), **found})
        return exit_code.SUCCESS
    _print_releases(releases)
    print_explanation(explanation, stdout_console(), all_nodes=all_nodes, arguments=arguments)
    _print_starts(starts)
    return exit_code.SUCCESS


def _print_group(
    group: ExplainedGroup,
    releases: Releases,
    output: AnswerFormat,
    starts: StartTimes | None = None,
) -> int:
    _refuse_markdown(output)
    if output == "json":
        found = start_times_json(starts) if starts else {}
        _print_json({**group_explanation_json(group), **releases.as_json(), **found})
        return exit_code.SUCCESS
    _print_releases(releases)
    print_group(group, stdout_console(), has_start_times=bool(starts and starts.rows))
    _print_starts(starts)
    return exit_code.SUCCESS


def _print_releases(releases: Releases) -> None:
    if releases.words:
        print_line(stdout_console(), releases.words)


def _print_json(value: Json) -> None:
    print_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def _arguments(snapshot: Snapshot, request: ExplainRequest, release: Release) -> tuple[str, ...]:
    """Return the arguments for `fairlead whatif` that name the explained cluster and schedulers."""
    asked = with_scheduler_arguments(snapshot, _conditions(request, release))
    applied = (word for value in request.apply for word in ("--apply", value))
    return (*asked.question_arguments, *applied)


def print_explanation(
    explanation: Explanation,
    console: Console,
    *,
    all_nodes: bool,
    arguments: Sequence[str] = (PLACEHOLDER,),
) -> None:
    """Print the evaluation of a pod on all nodes, with a row for each node if `all_nodes` is set.

    If `all_nodes` is not set, a long list of feasible nodes is cut off. In a long list of
    infeasible nodes, nodes with the same reason share an item. `arguments` are the arguments for
    `fairlead whatif` that name the same cluster and the scheduler's configuration.
    """
    rows_max = None if all_nodes else NODES_MAX
    found = explanation.evaluation
    _print_state(console, explanation)
    if explanation.is_static:  # the scheduler does not place static pods
        _print_notes(console, explanation)
        return
    if explanation.node:
        print_line(console, _decision_about_bound(found, explanation.node))
    elif explanation.held_group and found.via:
        _print_held(console, explanation, arguments)
    else:
        print_line(console, _decision(found))
    for sentence in filter(None, (explanation.after_rivals, *explanation.unmet)):
        print_line(console, sentence)
    if found.preemption is not None and found.preemption.nominated:
        verb = "It would preempt" if explanation.node else "Preempts"
        print_line(console, _preempts(found.preemption, verb))
    _print_new_nodes(console, explanation, arguments)
    is_cut = _print_feasible(console, found, rows_max)
    is_cut |= _print_infeasible(console, explanation, rows_max)
    if found.preemption is not None:
        is_cut |= _print_preemption(console, found.preemption, rows_max)
    if is_cut:
        print_line(console, "Use --all-nodes or -o json to list every node.", "dim")
    if found.room is not None and found.room.by != DEFAULT_PREEMPTION:
        _print_room(console, found.room)
    _print_notes(console, explanation)


def _print_state(console: Console, explanation: Explanation) -> None:
    """Print the pod's name, priority and node, and sentences about its present state."""
    where = f"on node {explanation.node}" if explanation.node else "pending"
    where += ", terminating" if explanation.is_terminating else ""
    print_line(console, f"{explanation.pod}: priority {explanation.priority}, {where}", "bold")
    for sentence in explanation.state:
        print_line(console, sentence)
    if explanation.is_terminating and not explanation.is_static:
        print_line(console, "It is being deleted, and does not move to another node.")


def _print_notes(console: Console, explanation: Explanation) -> None:
    for note in explanation.notes:
        print_line(console, f"Note: {note}", "yellow")


def _decision_about_bound(found: Evaluation, node: str) -> str:
    """Return what the scheduler would do if the pod, which is bound to `node`, were pending now."""
    if found.fit_error or (found.score_error and not found.via):
        why = found.fit_error or found.score_error
        return f"If it were pending now, it would stay pending: {why}"
    chosen = ["its own node" if one == node else one for one in found.choices]
    more = " ..." if len(chosen) > NAMES_MAX else ""
    names = ", ".join(chosen[:NAMES_MAX]) + more
    if len(chosen) > 1:
        goes = f"one of {len(chosen)} equal nodes, chosen at random: {names}"
    else:
        reasons = {"nominated": "its nominated node", "single": "the only node that fits"}
        goes = f"{names}, {reasons.get(found.via, 'which has the highest score')}"
    return f"If it were pending now, it would go to {goes}.{_about_own_node(found, node)}"


def _about_own_node(found: Evaluation, node: str) -> str:
    """Return a sentence about `node` if the scheduler would choose another node, else ""."""
    if node in found.choices or node not in found.verdicts:
        return ""
    refusal = found.verdicts[node]
    if refusal is not None:
        return f" Its own node would not take it: {refusal.message}."
    if node in found.totals:
        best = max(found.totals.values())
        return f" Its own node fits too, with a score of {found.totals[node]} instead of {best}."
    return " Its own node fits too."


def _decision(found: Evaluation) -> str:
    """Return the scheduling decision as one line of text."""
    if found.gated is not None:
        return f"Kept out of the queue by {found.gated.plugin}: {found.gated.message}"
    if found.fit_error:
        return found.fit_error
    if found.score_error and not found.via:
        return f"The scheduling cycle fails: {found.score_error}"
    chosen = ", ".join(found.choices[:NAMES_MAX])
    match found.via:
        case "nominated":
            return f"Goes to {chosen}, its nominated node."
        case "single":
            return f"Goes to {chosen}, the only node that fits."
        case _ if len(found.choices) == 1:
            return f"Goes to {chosen}, which has the highest score."
        case _:
            more = " ..." if len(found.choices) > NAMES_MAX else ""
            return f"Random choice among {len(found.choices)} equal nodes: {chosen}{more}"


def _preempts(found: PreemptionEvaluation, verb: str) -> str:
    """Return a sentence that begins with `verb` and names the preempted pods and their node.

    If several nodes are equally good, the sentence names these nodes, but no pods.
    """
    nodes = found.nominated
    if len(nodes) > 1:
        more = " ..." if len(nodes) > NAMES_MAX else ""
        return (
            f"{verb} pods on one of {len(nodes):,} equal nodes: "
            f"{', '.join(nodes[:NAMES_MAX])}{more}"
        )
    victims = [victim.key for victim in found.candidates[nodes[0]].victims]
    return f"{verb} {counted(len(victims), 'pod')} on {nodes[0]}: {listed(victims)}."


def _print_feasible(console: Console, found: Evaluation, rows_max: int | None) -> bool:
    """Print the nodes that fit, the best ones first; return whether nodes are left out.

    If there are more than `rows_max` nodes, only the first BEST_MAX nodes are printed.
    """
    names = [name for name, status in found.verdicts.items() if status is None]
    names.sort(key=lambda name: (-found.totals.get(name, 0), name))
    if not names:
        return False
    title = f"feasible nodes ({len(names):,}), scores 0..100 before weights"
    is_cut = rows_max is not None and len(names) > rows_max
    if is_cut:
        rows_max = BEST_MAX  # so that the answer fits one screen
    plugins = [name for name in found.scores if found.weights.get(name)]
    same: list[str] = []
    if len(names) > 1 and not _fits_scores(console, found, names[:rows_max], plugins):
        same = [name for name in plugins if len(set(_scores(found, names[:rows_max], name))) == 1]
        plugins = [name for name in plugins if name not in same]
    numbers: tuple[str, ...] = ("total",)
    if _fits_scores(console, found, names[:rows_max], plugins):
        columns = ("node", "total", *(_heading(found, plugin) for plugin in plugins), " ")
        numbers = columns[1:-1]
        scores = [_scores(found, names, plugin) for plugin in plugins]
    else:
        columns = ("node", "total", "score of each plugin x its weight", " ")
        scores = [[_score_words(found, name, plugins) for name in names]]
    totals = [str(found.totals.get(name, "")) for name in names]
    equals = ["equal" if name in found.best and len(found.best) > 1 else "" for name in names]
    rows = list(zip(names, totals, *scores, equals, strict=True))
    print_table(console, title, columns, rows, numbers=numbers, rows_max=rows_max)
    if same:
        words = _score_words(found, names[0], same)
        print_line(console, f"Scores that are the same on each of these nodes: {words}", "dim")
    if found.skipped_scores:
        words = ", ".join(found.skipped_scores)
        print_line(console, f"Plugins without scores for this pod: {words}", "dim")
    return is_cut


def _fits_scores(
    console: Console, found: Evaluation, names: Sequence[str], plugins: Sequence[str]
) -> bool:
    """Return whether `console` is wide enough for a table with a column for each of `plugins`.

    The table fits if no word is broken.
    """
    longest = [max(_heading(found, plugin).split(), key=len) for plugin in plugins]
    cells = [max(map(len, names)), *(5 for _ in (*longest, "total")), len("equal")]
    return table_width(("node", "total", *longest, " "), cells) <= console.width


def _heading(found: Evaluation, plugin: str) -> str:
    return f"{_spaced(plugin)} x{found.weights[plugin]}"


def _scores(found: Evaluation, names: Sequence[str], plugin: str) -> list[str]:
    return [str(found.scores[plugin].get(name, "")) for name in names]


def _score_words(found: Evaluation, node: str, plugins: Sequence[str]) -> str:
    """Return the score and weight of each plugin for `node`, such as `TaintToleration 100 x3`."""
    return ", ".join(
        f"{plugin} {found.scores[plugin].get(node, '')} x{found.weights[plugin]}"
        for plugin in plugins
    )


def _spaced(plugin: str) -> str:
    """Return a plugin's name with spaces between its words, so that a narrow column can wrap it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plugin)


def _print_infeasible(console: Console, explanation: Explanation, rows_max: int | None) -> bool:
    """Print the nodes that do not fit and why; return whether nodes are left out."""
    has_remedies = bool(explanation.remedies or explanation.too_small)
    ranks = {name: rank for rank, name in enumerate(explanation.remedies)}
    rows = [
        RefusedNode(
            name,
            (*_verdict(status), _may_help(explanation.evaluation, name, status)),
            _would_fit(explanation, name) if has_remedies else None,
            ranks.get(name, len(ranks)),
        )
        for name, status in sorted(explanation.evaluation.verdicts.items())
        if status is not None
    ]
    title = f"infeasible nodes ({len(rows):,})"
    remedy_columns = ("would fit after",) if has_remedies else ()
    columns = ("refused by", "because", "preemption may help", *remedy_columns)
    is_cut = print_refused(console, title, columns, rows, rows_max)
    if has_remedies and explanation.exceeds_remedies_max:
        note = f'"would fit after" was computed for the {REMEDIES_MAX:,} nodes that lack least.'
        print_line(console, note, "dim")
    return is_cut


def _print_held(console: Console, explanation: Explanation, arguments: Sequence[str]) -> None:
    """Print why a pod that fits a node is not bound: its PodGroup cannot start."""
    print_line(console, f"Not bound: its PodGroup {explanation.held_group} cannot start now.")
    if explanation.for_group is not None:
        _print_nodes_for_group(console, explanation.for_group, arguments)
    print_line(console, f"Without its group: {_decision(explanation.evaluation)}")


def _print_new_nodes(console: Console, explanation: Explanation, arguments: Sequence[str]) -> None:
    """Print whether new nodes would let the pod start, and a command that adds them."""
    if explanation.new_node is None:
        return
    if explanation.for_group is not None:
        _print_nodes_for_group(console, explanation.for_group, arguments)
    else:
        _print_one_more_node(console, explanation.new_node, arguments)
        if explanation.larger_node is not None:
            _print_larger_nodes(console, explanation.larger_node, arguments)


def _print_one_more_node(console: Console, new: NewNode, arguments: Sequence[str]) -> None:
    """Print whether the pod would fit on an additional node, and a command that adds the node."""
    if not new.like:
        print_line(console, f"{new.refusal[0].upper()}{new.refusal[1:]}.")
        return
    if new.refusal:
        none = "No copy of an existing node would take the pod."
        print_line(console, f"{none} A copy of {new.like} refuses it: {new.refusal}")
        return
    but = f", but no node of zone {new.failed_zone} takes pods now" if new.failed_zone else ""
    if new.count == 1:
        print_line(console, f"One more node like {new.like} would take the pod{but}.")
    elif new.count:
        first = "even if other pending pods of at least its priority come first"
        nodes = f"{new.count:,} more nodes like {', '.join(new.likes)}"
        print_line(console, f"{nodes} would take the pod, {first}{but}.")
    else:
        print_line(
            console,
            f"One more node like {new.like} would take the pod{but}. If all other pending pods of "
            f"at least its priority come first, more than {COPIES_MAX} such nodes are necessary.",
        )
        return
    _print_command(console, new.count, ",".join(new.likes), arguments)


def _print_larger_nodes(console: Console, new: NewNode, arguments: Sequence[str]) -> None:
    """Print that fewer, larger nodes would be enough, and a command that adds them."""
    nodes, are = ("One more node", "is") if new.count == 1 else (f"{new.count} more nodes", "are")
    line = f"{nodes} like {new.like}, which {are} larger, would be enough even then."
    print_line(console, line)
    _print_command(console, new.count, ",".join(new.likes), arguments)


def _print_nodes_for_group(
    console: Console, new: NewNodesForGroup, arguments: Sequence[str]
) -> None:
    """Print how many new nodes would let a PodGroup start, and a command that adds them."""
    if not new.count:
        none = f"More nodes like {new.like} alone would not let PodGroup {new.group} start."
        print_line(console, none)
        return
    nodes = "One more node" if new.count == 1 else f"{new.count:,} more nodes"
    print_line(console, f"{nodes} like {new.like} would let PodGroup {new.group} start.")
    _print_command(console, new.count, new.like, arguments)


def _print_command(console: Console, count: int, like: str, arguments: Sequence[str]) -> None:
    """Print the what-if that adds `count` nodes like the node `like`."""
    which = "this node" if count == 1 else "these nodes"
    words = ("fairlead", "whatif", *arguments, "--add-nodes", str(count), "--like", like)
    command = shlex.join(words)
    print_step(console, NextStep(f"ask what changes with {which}", command=command))


def _would_fit(explanation: Explanation, node: str) -> str:
    """Return the smallest change that makes `node` feasible.

    If no such change is known, return the reason why `node` is too small for the pod. Return "" if
    no such change is known and `node` is not too small.
    """
    remedy = explanation.remedies.get(node)
    return explanation.too_small.get(node, "") if remedy is None else remedy.what


def _verdict(status: Status) -> tuple[str, str]:
    return status.plugin, status.message


def _may_help(found: Evaluation, node: str, status: Status) -> str:
    """Return "yes" if preemption may make `node` feasible, else "no".

    `status` is the verdict on `node`. If preemption was tried on `node` and did not help, the
    result is "no".
    """
    is_resolvable = status.code is Code.UNSCHEDULABLE
    was_tried = found.preemption is not None and node in found.preemption.rejected
    return "yes" if is_resolvable and not (was_tried or found.no_preemption) else "no"


def _print_room(console: Console, room: RoomEvaluation) -> None:
    """Print how a PostFilter plugin other than DefaultPreemption makes room for the pod."""
    victims = ", ".join(f"{pod} ({priority})" for pod, priority in room.victims.items())
    line = f"{room.by} makes room on {room.node} by evicting {victims or 'no pods'}"
    print_line(console, line, style="bold")


def _print_preemption(console: Console, found: PreemptionEvaluation, rows_max: int | None) -> bool:
    """Print for which nodes preemption helps; return whether some nodes are left out.

    At most `rows_max` nodes are printed; None means all nodes.
    """
    if found.ineligible or found.post_filter_error:
        why = found.ineligible or found.post_filter_error
        print_line(console, f"Cannot preempt: {why}")
        return False
    rows = [
        (
            name,
            str(candidate.pdb_violations),
            ", ".join(f"{victim.key} ({victim.priority})" for victim in candidate.victims),
            "chosen" if found.nominated == [name] else "equal" if name in found.nominated else "",
        )
        for name, candidate in found.candidates.items()
    ]
    rows.sort(key=lambda row: row[-1] == "")  # chosen nodes first
    title = f"candidates for preemption ({len(rows):,})"
    columns = ("node", "victims against a budget", "victims (priority)", " ")
    print_table(
        console, title, columns, rows, numbers=("victims against a budget",), rows_max=rows_max
    )
    if found.rule:
        print_line(console, f"Decided by: {found.rule}")
    rejected = [
        RefusedNode(name, _verdict(status)) for name, status in sorted(found.rejected.items())
    ]
    title = f"nodes where preemption does not help ({len(rejected):,})"
    return print_refused(console, title, ("refused by", "because"), rejected, rows_max)
