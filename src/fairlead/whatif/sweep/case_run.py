"""Runs the cases of a sweep, in this process or in another that has the scenario's files.

A result depends on the scenario and its files only, so it is the same wherever a case runs.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairlead.api.json import Json
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.strict_form import decode_strictly
from fairlead.whatif.result.result_json import encode_result, simulation_result
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.experiment_run import FinishedRun, run_experiment
from fairlead.whatif.scenario.scenario import Scenario, experiment_of


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case as JSON text, or the `problem` that kept it from running."""

    text: bytes = b""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioFiles:
    """The files that scenarios name, to be sent to another machine.

    `contents` are keyed by path below one folder; `names` are what the scenarios call those files
    and directories, and their paths below that folder.
    """

    contents: Mapping[str, bytes]
    names: Mapping[str, str]

    @property
    def digest(self) -> str:
        """What identifies the contents."""
        digest = hashlib.sha256()
        for path, content in sorted(self.contents.items()):
            digest.update(f"{path}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()


def read_files(folder: Path, scenarios: Iterable[Json]) -> ScenarioFiles:
    """Return the files below or outside `folder` that `scenarios` name in any field.

    Raises InputError for files that cannot be read.
    """
    contents: dict[str, bytes] = {}
    names: dict[str, str] = {}
    for name in dict.fromkeys(text for one in scenarios for text in _texts(one)):
        # A longer text is no file name; the system would refuse to look it up.
        place = folder / name if 0 < len(name) < 1024 and "\0" not in name else None
        if place is None or "\n" in name or not place.exists():
            continue
        names[name] = str(len(names))
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file():
                below = file.relative_to(place) if place.is_dir() else Path(file.name)
                contents[f"{names[name]}/{below}"] = _content(file)
        if place.is_file():
            names[name] = f"{names[name]}/{place.name}"
    return ScenarioFiles(contents, names)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as cause:
        raise InputError(str(file), cause.strerror or str(cause)) from None


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)


def run_with_files(files: ScenarioFiles, source: str, scenario: Json) -> CaseResult:
    """Run `scenario` on a machine that does not have its files; see `run_case`."""
    with tempfile.TemporaryDirectory(prefix="fairlead-sweep-") as folder:
        for path, content in files.contents.items():
            file = Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        found = run_case(source, _renamed(scenario, files.names), Path(folder))
    return replace(found, problem=found.problem.replace(f"{folder}/", ""))


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    match value:
        case str():
            return names.get(value, value)
        case dict():
            return {key: _renamed(item, names) for key, item in value.items()}
        case list():
            return [_renamed(item, names) for item in value]
        case _:
            return value


def run_case(source: str, scenario: Json, folder: Path | None = None) -> CaseResult:
    """Run `scenario`, called `source` in the result; `folder` has its files if not beside it."""
    try:
        experiment, finished = run_scenario(source, scenario, folder)
    except InputError as problem:
        return CaseResult(problem=str(problem))
    return CaseResult(encode_result(simulation_result(experiment, finished.outcome)))


def run_scenario(
    source: str, scenario: Json, folder: Path | None = None
) -> tuple[Experiment, FinishedRun]:
    """Run `scenario`; see `run_case`. Raises InputError."""
    form = decode_strictly(Document(source, scenario), Scenario)
    path = source if folder is None else str(folder / Path(source).name)
    experiment = replace(experiment_of(path, form), source=source)
    return experiment, run_experiment(experiment)
