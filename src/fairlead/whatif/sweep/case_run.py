"""Runs the cases of a sweep, in this process or in any process that has the scenario's files."""

from __future__ import annotations

import gc
import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, inspect
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.engine.batch.configuration_file import SHIPPED
from fairlead.whatif.configuration.batch.options import SINGLE_PODS
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.field_line import with_lines_of
from fairlead.whatif.input.strict_form import decode_strictly
from fairlead.whatif.report.report_builder import Heading, simulation_report
from fairlead.whatif.report.write import encode_report
from fairlead.whatif.result.result_json import encode_result, simulation_result
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.experiment_run import FinishedRun, run_experiment
from fairlead.whatif.scenario.scenario import Scenario, experiment_of
from fairlead.whatif.sweep.case import Case
from fairlead.whatif.sweep.measure import Number, measures_of, severity

# The memory of a cluster with at least this number of objects is freed at the end of its case. This
# takes 20 ms or more. Otherwise, each case with 6,000 pods would add 150 MB to the process.
_LARGE: Final = 1_000
_NO_FILES: Final = (*SHIPPED, SINGLE_PODS)  # names of shipped batch configurations


class CaseResult(Struct, frozen=True):
    """The result of a case as JSON text, or the `problem` that prevented its run.

    `report` is the HTML report of the case. `report` is b"" if a more severe case was already known
    when this case was submitted (`KnownWorst`). Only the report of the worst case is needed.
    """

    text: bytes = b""
    problem: str = ""
    report: bytes = b""


class KnownWorst(Struct, frozen=True):
    """The `severity` of the worst case that is known so far; () before the first case.

    The measure `rank_by` decides which case is the worst.
    """

    rank_by: str
    severity: tuple[Number, ...] = ()


class ScenarioFiles(Struct, frozen=True):
    """The files that scenarios name, to be sent to another machine.

    `contents` maps the path of each file to its content. The paths are relative to a new folder.
    `names` maps each name of a file or directory in a scenario to its path in the new folder.
    """

    contents: Mapping[str, bytes]
    names: Mapping[str, str]

    @property
    def digest(self) -> str:
        """The SHA-256 of the paths and contents of the files, in hexadecimal."""
        digest = hashlib.sha256()
        for path, content in sorted(self.contents.items()):
            digest.update(f"{path}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()


def read_files(folder: Path, scenarios: Iterable[Json]) -> ScenarioFiles:
    """Return the files that `scenarios` name in fields of the type FileName.

    The names in `scenarios` are relative to `folder`. Files that do not exist are left out. Raises
    InputError for other files that cannot be read.
    """
    contents: dict[str, bytes] = {}
    names: dict[str, str] = {}
    for name in dict.fromkeys(name for one in scenarios for name in file_names(one)):
        place = folder / name
        if not _exists(place):
            continue
        names[name] = str(len(names))
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file():
                below = file.relative_to(place) if place.is_dir() else Path(file.name)
                contents[f"{names[name]}/{below}"] = _content(file)
        if place.is_file():
            names[name] = f"{names[name]}/{place.name}"
    return ScenarioFiles(contents, names)


def _exists(place: Path) -> bool:
    """Return whether `place` exists; an impossible file name does not exist."""
    try:
        place.stat()
    except (OSError, ValueError):
        return False
    return True


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as cause:
        raise InputError(str(file), cause.strerror or str(cause)) from None


def file_names(scenario: Json) -> list[str]:
    """Return the file names in `scenario` (fields of the type FileName), without duplicates."""
    names: dict[str, None] = {}
    _with_names(scenario, lambda name: names.setdefault(name) or name)
    return list(names)


def run_with_files(files: ScenarioFiles, source: str, case: Case, worst: KnownWorst) -> CaseResult:
    """Run `case` as `run_case` does, but with `files` instead of files of this machine."""
    renamed = _with_names(case.scenario, lambda name: files.names.get(name, name))
    with tempfile.TemporaryDirectory(prefix="fairlead-sweep-") as folder:
        for path, content in files.contents.items():
            file = Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        found = run_case(source, replace(case, scenario=renamed), worst, Path(folder))
    return replace(found, problem=found.problem.replace(f"{folder}/", ""))


def _with_names(scenario: Json, renamed: Callable[[str], str]) -> Json:
    """Return `scenario` with each file name replaced by the result of `renamed`."""
    for path in file_fields(Scenario):
        scenario = _changed(scenario, path, renamed)
    return scenario


def file_fields(form: type[msgspec.Struct]) -> list[tuple[str, ...]]:
    """Return the path of each field of the type FileName in `form`.

    `*` in a path stands for each item of a list. Example: ("cluster", "files", "*").
    """

    def paths(at: inspect.Type, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        match at:
            case inspect.Metadata(type=inner, extra=extra):
                if extra is not None and extra.get("is_file"):
                    yield path
                yield from paths(inner, path)
            case inspect.UnionType(types=choices):
                for choice in choices:
                    yield from paths(choice, path)
            case inspect.ListType(item_type=item):
                yield from paths(item, (*path, "*"))
            case inspect.StructType(fields=fields):
                for field in fields:
                    yield from paths(field.type, (*path, field.encode_name))
            case _:
                pass

    return list(paths(inspect.type_info(form), ()))


def _changed(value: Any, path: Sequence[str], renamed: Callable[[str], str]) -> Any:
    match path, value:
        case [], str():
            return value if value in _NO_FILES else renamed(value)
        case ["*", *rest], list():
            return [_changed(item, rest, renamed) for item in value]
        case [key, *rest], dict() if key in value:
            return {**value, key: _changed(value[key], rest, renamed)}
        case _:
            return value


def run_case(source: str, case: Case, worst: KnownWorst, folder: Path | None = None) -> CaseResult:
    """Run `case`; `source` names its scenario in the result.

    A sweep shows only the report of the worst case. So the result contains a report only if the
    case is at least as severe as `worst`. `folder` contains the files that the scenario names. If
    `folder` is None, the files are in the folder of `source`. If the input is invalid, the result
    contains the problem.
    """
    try:
        experiment, finished = run_scenario(source, case.scenario, folder)
    except InputError as problem:
        return CaseResult(problem=str(problem))
    text = encode_result(simulation_result(experiment, finished.outcome))
    found = severity(measures_of(msgspec.json.decode(text)), worst.rank_by)
    report = case_report(case, experiment, finished) if found >= worst.severity else b""
    is_large = len(experiment.initial) >= _LARGE
    del experiment, finished
    if is_large:
        gc.collect()  # a simulated cluster has reference cycles
    return CaseResult(text, report=report)


def case_report(case: Case, experiment: Experiment, finished: FinishedRun) -> bytes:
    """Return the HTML report of `case`; `finished` is the run of its `experiment`."""
    title = f"{experiment.title}: {case.title}"
    words = experiment.scheduler_words
    heading = Heading(title, experiment.source, experiment.seed, 0.0, words)
    return encode_report(simulation_report(heading, finished.outcome))


def run_scenario(
    source: str, scenario: Json, folder: Path | None = None
) -> tuple[Experiment, FinishedRun]:
    """Run `scenario`; return (its experiment, its run). `run_case` describes the parameters.

    Raises InputError.
    """
    form = decode_strictly(Document(source, scenario), Scenario)
    path = source if folder is None else str(folder / Path(source).name)
    # A worker on another machine has the content of the scenario, but not the scenario's file.
    with with_lines_of(path) if Path(path).is_file() else nullcontext():
        experiment = replace(experiment_without_extenders(path, form), source=source)
    return experiment, run_experiment(experiment)


def experiment_without_extenders(path: str, scenario: Scenario) -> Experiment:
    """Return the experiment of `scenario`, which was read from `path`.

    Raises InputError if its scheduler has extenders. The results of a sweep are kept and not
    computed again, but responses of extenders can change between two runs.
    """
    experiment = experiment_of(path, scenario, allow_extenders=True)
    if experiment.scheduler.extenders:
        problem = "has extenders; a sweep does not call extenders"
        raise InputError(path, problem, field="settings.scheduler")
    return experiment
