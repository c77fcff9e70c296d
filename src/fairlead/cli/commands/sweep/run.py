"""Runs `fairlead sweep`, from its options to its exit code.

1. the cases      read the scenario once; make a case for each combination of --vary values
2. the results    read the results of an earlier run from the folder; run the other cases
3. the answer     measure the results; write tables and reports; print the answer
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from fairlead import __version__
from fairlead.api.json import Json
from fairlead.api.well_known_label import ZONE
from fairlead.apiserver.kind import NODE
from fairlead.cli import exit_code
from fairlead.cli.commands.sweep.case_table import csv_table, parquet_table, require_parquet
from fairlead.cli.commands.sweep.condition import parse_condition, require_measure
from fairlead.cli.commands.sweep.executor import Executor, parse_place
from fairlead.cli.options.output import AnswerFormat
from fairlead.cli.options.parameter import Names
from fairlead.cli.output.atomic_file import write_atomically
from fairlead.cli.output.console.progress_bar import ProgressBar
from fairlead.cli.output.distinct_outputs import require_distinct
from fairlead.cli.output.result_file import say_written
from fairlead.cli.output.tabular_answer import print_tabular
from fairlead.whatif.configuration.plugin_source import installed_code
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.duration import read_duration
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.field_line import with_lines
from fairlead.whatif.input.strict_form import decode_strictly
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.scenario.scenario import Scenario, read_scenario_document
from fairlead.whatif.sweep.answer import CheckedCondition, sweep_answer
from fairlead.whatif.sweep.case import Case, cases_of
from fairlead.whatif.sweep.case_run import (
    CaseResult,
    KnownWorst,
    ScenarioFiles,
    case_report,
    experiment_without_extenders,
    read_files,
    run_scenario,
)
from fairlead.whatif.sweep.measure import Number, measures_of, severity
from fairlead.whatif.sweep.sweep_page import render_sweep
from fairlead.whatif.sweep.variation import (
    FieldVariation,
    LossVariation,
    Variation,
    parse_variation,
)

WORST: Final = "worst.html"
_LOSS: Final = re.compile(r"(zone|node)@(.+)")
_INITIAL: Final = ("cluster", "objects")  # the fields that contain the nodes of a scenario


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """The arguments of a sweep.

    `sample` and `sample_seed` are --random and --random-seed, `folder` is --out, and `place` is
    --on. The other fields have the names of their options.
    """

    scenario: str
    vary: Names
    lose: Names
    sample: int | None
    sample_seed: int
    rank_by: str
    fail_on: Names
    folder: Path
    parquet: bool
    place: str
    output: AnswerFormat


def run_sweep(request: SweepRequest) -> int:
    """Run the sweep, write its files, print the answer and return the exit code.

    Raises InputError.
    """
    conditions = [parse_condition(text) for text in request.fail_on]
    require_measure("--rank-by", request.rank_by)
    execute = parse_place(request.place)
    if request.parquet:
        require_parquet()
    cases = _cases(request)
    worst = _WorstCase(request.rank_by)
    results = _results(request, cases, execute, worst)
    rows, noted = [], []
    for text in results:  # one after another, because decoded results are large
        result = msgspec.json.decode(text)
        rows.append(measures_of(result))
        noted.append(result["notes"])
    checked = [
        CheckedCondition(
            text,
            one.measure,
            tuple(case.number for case, row in zip(cases, rows, strict=True) if one.holds(row)),
        )
        for text, one in zip(request.fail_on, conditions, strict=True)
    ]
    answer = sweep_answer(request.scenario, cases, rows, request.rank_by, checked, noted)
    _write(request, cases, rows, answer.to_json(), worst)
    print_tabular(answer, request.output)
    return exit_code.CONDITION_HOLDS if any(one.cases for one in checked) else exit_code.SUCCESS


# --- the cases ----------------------------------------------------------------------------------


def _cases(request: SweepRequest) -> list[Case]:
    path = request.scenario
    document = read_scenario_document(path)
    with with_lines(document):
        decode_strictly(document, Scenario)
    # The cases have no outputs, because they would overwrite each other's files.
    plain = {key: value for key, value in document.value.items() if key != "outputs"}
    fields = [parse_variation(text) for text in request.vary]
    losses = [_losses(text, path, plain, fields) for text in request.lose]
    variations: list[Variation] = [*fields, *losses]
    if not variations:
        raise InputError("--vary", "is missing: name what differs, such as --vary seed=0..9")
    names = [one.name for one in variations]
    for name in names:
        if names.count(name) > 1:
            option = "--lose" if name.startswith("lost-") else "--vary"
            raise InputError(option, "is given twice", object_name=name)
    if request.sample is not None and request.sample < 1:
        raise InputError("--random", f"{request.sample} is not 1 or more")
    if request.sample is None and request.sample_seed:
        raise InputError("--random-seed", "needs --random")
    cases = cases_of(plain, variations, request.sample, request.sample_seed)
    for case in cases:
        _require_valid(path, case)
    return cases


def _require_valid(path: str, case: Case) -> None:
    """Raise InputError, which names the case, if the scenario of `case` has an invalid field."""
    try:
        decode_strictly(Document(path, case.scenario), Scenario)
    except InputError as cause:
        raise InputError(path, f"{cause.problem} (with {case.title})", field=cause.field) from None


def _losses(
    text: str, path: str, scenario: Json, fields: Sequence[FieldVariation]
) -> LossVariation:
    """Return the variation for `text`, a value of `--lose`, such as `zone@10m`.

    The first value of the variation is None: nothing fails. Each other value is the name of the
    zone or node that fails. The values of `fields` can change which zones and nodes exist. Each
    zone or node that exists with at least one combination of these values is included. `path` is
    the file of `scenario`. Raises InputError.
    """
    found = _LOSS.fullmatch(text)
    if found is None:
        raise InputError("--lose", f"{text!r} is not zone@TIME or node@TIME, such as zone@10m")
    part, at = found[1], found[2]
    try:
        read_duration(at)
    except ValueError as cause:
        raise InputError("--lose", str(cause)) from None
    parts = _Parts(path, part)
    names: dict[str, None] = {}
    for case in cases_of(scenario, [one for one in fields if _step(one.name) in _INITIAL]):
        _require_valid(path, case)
        names |= dict.fromkeys(parts.of(case.scenario))
    if not names:
        raise InputError("--lose", f"the scenario's nodes have no {part}")
    return LossVariation(f"lost-{part}", f"fail-{part}", (None, *names), at, parts.of)


class _Parts:
    """Finds the names of the nodes, or of the zones, that a variant of a scenario has."""

    def __init__(self, path: str, part: str) -> None:
        """`part` is `node` or `zone`; `path` is the file of the original scenario."""
        self._path = path
        self._part = part
        self._known: dict[bytes, list[str]] = {}

    def of(self, scenario: Json) -> Collection[str]:
        """Return the names of all nodes, or of all zones, in `scenario`.

        The parameter `part` of `__init__` chooses between nodes and zones. Raises
        InputError if `scenario` is not valid.
        """
        initial = {name: scenario.get(name) for name in _INITIAL}
        key = msgspec.json.encode(initial, order="deterministic")
        if key not in self._known:
            form = decode_strictly(Document(self._path, scenario), Scenario)
            self._known[key] = self._names(experiment_without_extenders(self._path, form))
        return self._known[key]

    def _names(self, experiment: Experiment) -> list[str]:
        nodes = [one.value["metadata"] for one in experiment.initial if one.ref.kind == NODE.kind]
        if self._part == "node":
            return [node["name"] for node in nodes]
        zones = {(node.get("labels") or {}).get(ZONE) for node in nodes}
        return sorted(zone for zone in zones if zone)


def _step(path: str) -> str:
    """Return the first step of the path of a field: `cluster` of `cluster.generated.nodes`."""
    return re.split(r"[.\[]", path, maxsplit=1)[0]


# --- the results --------------------------------------------------------------------------------


class _WorstCase:
    """The worst of the cases that this sweep has run so far, with its report.

    `number` is 0 if no case has been run.
    """

    def __init__(self, rank_by: str) -> None:
        self.known = KnownWorst(rank_by)
        self.number = 0
        self.report = b""

    def observe(self, number: int, result: CaseResult) -> None:
        """Keep the report of the case `number` if the case is the worst so far."""
        if not result.report:
            return
        found = severity(measures_of(msgspec.json.decode(result.text)), self.known.rank_by)
        # Of equally bad cases, the one with the lowest number is the worst (`worst_case`).
        if (found, -number) > (self.known.severity, -self.number):
            self.known = replace(self.known, severity=found)
            self.number, self.report = number, result.report


def _results(
    request: SweepRequest, cases: Sequence[Case], execute: Executor, worst: _WorstCase
) -> list[bytes]:
    """Return the results of `cases`, in order.

    The results of an earlier run are read from the output folder. `execute` runs the other cases,
    and `worst` observes their results. Raises InputError.
    """
    folder = request.folder / "cases"
    files = read_files(Path(request.scenario).parent, (case.scenario for case in cases))
    _require_outside(request, files)
    _require_distinct(request, files)
    with results_folder(folder):
        return _results_in(folder, request.scenario, files, cases, execute, worst)


@contextmanager
def results_folder(folder: Path) -> Iterator[None]:
    """Create `folder` and its missing parents for a `with` block.

    When the block fails or is interrupted, the new directories that are empty are removed. Raises
    InputError.
    """
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise InputError("--out", f"{folder}: {cause.strerror or cause}") from None
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for path in new:
                path.rmdir()
        raise


def _require_outside(request: SweepRequest, files: ScenarioFiles) -> None:
    """Raise InputError if the sweep would write into a directory that the scenario reads."""
    out = request.folder.resolve()
    for name in files.names:
        place = (Path(request.scenario).parent / name).resolve()
        if place.is_dir() and out.is_relative_to(place):
            problem = f"{request.folder} is inside {name}, whose files the scenario reads"
            raise InputError("--out", f"{problem}; name another folder")


def _require_distinct(request: SweepRequest, files: ScenarioFiles) -> None:
    """Raise InputError if the sweep would overwrite a file that it reads."""
    inputs = [request.scenario, [Path(request.scenario).parent / name for name in files.names]]
    for name in ("cases.csv", "cases.parquet", "report.html", WORST):
        if (request.folder / name).exists():
            require_distinct({"--out": request.folder / name}, inputs)


def _results_in(
    folder: Path,
    source: str,
    files: ScenarioFiles,
    cases: Sequence[Case],
    execute: Executor,
    worst: _WorstCase,
) -> list[bytes]:
    digest, code = files.digest, f"{__version__}{installed_code()}"
    places = {one.number: folder / f"{one.digest(digest, code)}.json" for one in cases}
    missing = [case for case in cases if not places[case.number].is_file()]
    titles = {case.number: case.title for case in cases}
    with ProgressBar() as progress:
        progress.begin(f"{len(cases):,} cases", len(cases))
        left = {case.number for case in missing}
        problems: dict[int, str] = {}
        results = execute(source, missing, files, lambda: worst.known) if missing else ()
        for number, result in results:
            left.remove(number)
            if result.problem:
                problems[number] = result.problem
            else:
                write_atomically(places[number], result.text)
                worst.observe(number, result)
            # The error is about the invalid case with the lowest number, whichever case ends
            # first.
            if problems and min(problems) < min(left, default=len(cases) + 1):
                raise InputError("case", f"{titles[min(problems)]}: {problems[min(problems)]}")
            progress.reach(len(cases) - len(left), 0)
    return [places[case.number].read_bytes() for case in cases]


# --- the answer ---------------------------------------------------------------------------------


def _write(
    request: SweepRequest,
    cases: Sequence[Case],
    rows: Sequence[Mapping[str, Number | None]],
    answer: dict[str, Any],
    worst: _WorstCase,
) -> None:
    folder = request.folder
    write_atomically(folder / "cases.csv", csv_table(cases, rows))
    if request.parquet:
        write_atomically(folder / "cases.parquet", parquet_table(cases, rows))
    case = cases[answer["worst"]["case"] - 1]
    report = worst.report
    if worst.number != case.number:  # its result is from an earlier run
        report = case_report(case, *run_scenario(request.scenario, case.scenario))
    write_atomically(folder / WORST, report)
    page = render_sweep(answer, WORST)
    write_atomically(folder / "report.html", page.encode("utf-8", "replace"))
    say_written("report", folder / "report.html")
