"""The file of --runtimes: the runtimes of pods, by workload, image or label.

    runtimes:
      - workload: cronjob/etl/nightly     # KIND/NAMESPACE/NAME; * matches any part of a name
        durations: [10m, 12m, 25m]        # earlier runs, all equally probable
      - image: registry.example/train:2   # of any container, as in the pod
        percentiles: {p10: 20m, p50: 1h, p90: 3h}
      - label: app=import
        durations: 300                    # numbers are seconds

The file can also be a CSV table with a column `workload`, `image` or `label`. The table then has a
column `duration` (one run per row), or columns for percentiles, such as `p10` and `p50`:

    workload,duration
    job/etl/import-*,10m
    job/etl/import-*,12m

Between percentiles, runtimes are interpolated linearly; below the lowest and above the highest
percentile, runtimes are constant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.input.document import Document, decode_text, read_bytes, read_one
from fairlead.whatif.input.duration import read_duration
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.strict_form import StrictForm, decode_strictly
from fairlead.whatif.input.table import read_table
from fairlead.whatif.run.pod_timing.runtime import Durations, StatedRuntime

_SUBJECTS: Final = ("workload", "image", "label")
_PERCENTILE: Final = re.compile(r"p(100|[0-9]{1,2})")
_STEPS: Final = 100  # number of runtimes that represent percentiles

Duration = str | int | float


class RuntimeForm(StrictForm, frozen=True, kw_only=True):
    """One entry of the file.

    An entry has one of `workload`, `image` and `label`, and one of `durations` and `percentiles`.
    """

    workload: str | None = None
    image: str | None = None
    label: str | None = None
    durations: Duration | list[Duration] | None = None
    percentiles: dict[str, Duration] | None = None


class RuntimeFile(StrictForm, frozen=True, kw_only=True):
    """The content of a --runtimes file that is not a CSV table."""

    runtimes: list[RuntimeForm]


def read_runtimes(path: str) -> tuple[StatedRuntime, ...]:
    """Return the runtimes in the file `path`, in its order. Raises InputError."""
    if path.endswith(".csv"):
        return _read_table(path)
    document = read_one(path)
    if isinstance(document.value, list):
        document = Document(document.source, {"runtimes": document.value})
    forms = decode_strictly(document, RuntimeFile).runtimes
    if not forms:
        raise InputError(path, "contains no runtime", field="runtimes")
    return tuple(_entry(path, f"runtimes[{number}]", form) for number, form in enumerate(forms))


def _entry(path: str, where: str, form: RuntimeForm) -> StatedRuntime:
    given = {name: getattr(form, name) for name in _SUBJECTS if getattr(form, name) is not None}
    if len(given) != 1:
        raise InputError(path, "needs exactly one of workload, image and label", field=where)
    if (form.durations is None) == (form.percentiles is None):
        raise InputError(path, "needs either durations or percentiles", field=where)
    (subject, text), *_ = given.items()
    if form.percentiles is not None:
        durations = _of_percentiles(path, f"{where}.percentiles", form.percentiles)
    else:
        stated = form.durations if isinstance(form.durations, list) else [form.durations]
        if not stated:
            raise InputError(path, "is empty", field=f"{where}.durations")
        many = isinstance(form.durations, list)
        durations = tuple(
            sorted(
                _duration(path, f"{where}.durations{f'[{n}]' if many else ''}", one)
                for n, one in enumerate(stated)
            )
        )
    return _stated(path, f"{where}.{subject}", subject, text, durations)


def _stated(path: str, where: str, subject: str, text: str, durations: Durations) -> StatedRuntime:
    match subject:
        case "workload":
            if text.count("/") != 2 or not all(text.split("/")):
                problem = f"{text!r} is not KIND/NAMESPACE/NAME, such as cronjob/etl/nightly"
                raise InputError(path, problem, field=where)
            kind, _, name = text.partition("/")
            return StatedRuntime(durations=durations, workload=f"{kind.lower()}/{name}")
        case "image":
            if not text:
                raise InputError(path, "is empty", field=where)
            return StatedRuntime(durations=durations, image=text)
        case _:
            key, sign, value = text.partition("=")
            if not key or not sign:
                raise InputError(path, f"{text!r} is not KEY=VALUE", field=where)
            return StatedRuntime(durations=durations, label=(key, value))


def _duration(path: str, where: str, stated: Any) -> DurationNs:
    try:
        return read_duration(stated)
    except ValueError as cause:
        raise InputError(path, str(cause), field=where) from None


def _of_percentiles(path: str, where: str, stated: Mapping[str, Any]) -> Durations:
    """Return runtimes that have the percentiles `stated`.

    For a p50 of 1h and a p90 of 3h, the result is a hundred runtimes: 50 of 1h, then 40 in equal
    steps from 1h to 3h, then ten of 3h.
    """
    if not stated:
        raise InputError(path, "is empty", field=where)
    points: list[tuple[int, DurationNs]] = []
    for name, value in stated.items():
        found = _PERCENTILE.fullmatch(name)
        if found is None:
            raise InputError(path, f"{name!r} is not a percentile such as p50", field=where)
        points.append((int(found[1]), _duration(path, f"{where}.{name}", value)))
    points.sort()
    for (low, before), (high, after) in pairwise(points):
        if low == high:
            raise InputError(path, f"p{high} is stated twice", field=where)
        if after < before:
            raise InputError(path, f"p{high} is less than p{low}", field=where)
    return tuple(_interpolated(points, step) for step in range(1, _STEPS + 1))


def _interpolated(points: Sequence[tuple[int, DurationNs]], percent: int) -> DurationNs:
    """Return the percentile `percent` of the run time.

    `points` are known percentiles, as (percent, run time), in ascending order. The result is
    interpolated between the two points nearest to `percent`.
    """
    if percent <= points[0][0]:
        return points[0][1]
    for (low, before), (high, after) in pairwise(points):
        if percent <= high:
            return before + (after - before) * (percent - low) // (high - low)
    return points[-1][1]


# --- CSV -----------------------------------------------------------------------------------------


def _read_table(path: str) -> tuple[StatedRuntime, ...]:
    """Return the runtimes of a CSV file, one entry for each workload, image or label.

    Raises InputError.
    """
    header, rows = read_table(path, decode_text(path, read_bytes(Path(path))))
    percentiles = _check_header(path, header)
    found: dict[tuple[str, str], StatedRuntime] = {}
    runs: dict[tuple[str, str], list[DurationNs]] = {}
    for line, row in rows:
        where = f"line {line}"
        if None in row:
            raise InputError(path, f"{where}: has more cells than the header")
        cells = {name: (row.get(name) or "").strip() for name in header}
        given = [(name, cells[name]) for name in _SUBJECTS if cells.get(name)]
        if len(given) != 1:
            raise InputError(path, f"{where}: needs exactly one of workload, image and label")
        subject, text = given[0]
        if percentiles:
            if given[0] in found:
                raise InputError(path, f"{where}: {subject}: {text!r} is stated twice")
            stated = {one: _cell(cells[one]) for one in percentiles if cells[one]}
            durations = _of_percentiles(path, where, stated)
        else:
            durations = (_duration(path, f"{where}: duration", _cell(cells["duration"])),)
        if given[0] not in found:
            found[given[0]] = _stated(path, f"{where}: {subject}", subject, text, ())
        runs.setdefault(given[0], []).extend(durations)
    if not found:
        raise InputError(path, "contains no runtime")
    return tuple(replace(one, durations=tuple(sorted(runs[key]))) for key, one in found.items())


def _check_header(path: str, header: Sequence[str]) -> list[str]:
    """Return the percentile columns; [] if there is a column `duration`. Raises InputError."""
    percentiles = [name for name in header if _PERCENTILE.fullmatch(name)]
    for name in header:
        if name not in (*_SUBJECTS, "duration", *percentiles):
            known = ", ".join((*_SUBJECTS, "duration", "p50"))
            raise InputError(path, f"line 1: has an unknown column {name!r}; known: {known}")
    if not any(name in header for name in _SUBJECTS):
        raise InputError(path, "line 1: has no column workload, image or label")
    if bool(percentiles) == ("duration" in header):
        raise InputError(path, "line 1: needs either a column duration or columns such as p50")
    return percentiles


def _cell(text: str) -> str | float:
    """Return `text` as a float (seconds) if it is a number without a unit, else `text` itself."""
    return float(text) if text.replace(".", "", 1).isdecimal() else text
