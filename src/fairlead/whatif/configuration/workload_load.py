"""Load of workloads: the field `load` of a scenario, and the file of --load.

    - workload: deploy/shop/web          # or a selector of workloads: deploy/shop/tier=web
      cpu: 4                             # cores in total; the ready pods share them
      memory: 8Gi
    - workload: deploy/shop/api
      cpu: {steps: {0s: 2, 1h: 8, 90m: 2}}         # each amount holds until the next time
    - workload: deploy/shop/search
      cpu: {ramp: {0s: 2, 1h: 8, 2h: 2}, repeat: 2h}      # linear between the times
    - workload: deploy/shop/cart
      cpu: {daily: {low: 2, high: 8, peak: 14h}}   # a cosine, lowest 12 hours before its peak
    - csv: load.csv                      # time,workload,cpu,memory; an amount holds until the next

Times count from the start of the run; in a what-if, from the time of the change. A CSV file may
contain RFC 3339 timestamps instead, which count from the first timestamp in the file. A --load file
whose name ends with .csv is itself such a CSV file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import cos, pi
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import (
    DEPLOYMENT,
    HORIZONTAL_POD_AUTOSCALER,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
)
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.workloads.horizontal_pod_autoscaler.load import (
    CPU,
    RESOURCES,
    LoadCurve,
    ScaleTargetKey,
    WorkloadLoads,
    parse_amount,
)
from fairlead.whatif.input.document import Document, decode_text, read_bytes, read_one
from fairlead.whatif.input.duration import read_duration
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.field_line import with_lines
from fairlead.whatif.input.strict_form import FileName, StrictForm, decode_strictly, field_duration
from fairlead.whatif.input.table import read_table
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest

OPTION: Final = "--load"
DAY: Final = seconds(86_400)
_SCALABLE: Final = (DEPLOYMENT, STATEFUL_SET, REPLICA_SET, REPLICATION_CONTROLLER)
_NO_LOAD: Final = "contains no load"
_COLUMNS: Final = ("time", "workload", *RESOURCES)
# A daily curve consists of linear parts of five minutes each.
_DAILY_PARTS: Final = 288

Amount = str | int | float
Duration = str | int | float
Points = list[tuple[DurationNs, int]]


class DailyForm(StrictForm, frozen=True, kw_only=True):
    """A cosine over 24 hours from `low` to `high`; it reaches `high` at the time `peak`."""

    low: Amount
    high: Amount
    peak: Duration = "12h"


class ShapeForm(StrictForm, frozen=True, kw_only=True):
    """A load that changes over time; exactly one of `steps`, `ramp` and `daily` is given.

    `repeat` is the period after which `steps` or `ramp` begins again.
    """

    steps: dict[str | int | float, Amount] | None = None
    ramp: dict[str | int | float, Amount] | None = None
    daily: DailyForm | None = None
    repeat: Duration | None = None


class LoadForm(StrictForm, frozen=True, kw_only=True):
    """The load of a workload, or a CSV file with the load of several workloads."""

    workload: str | None = None
    csv: FileName | None = None
    cpu: str | int | float | ShapeForm | None = None
    memory: str | int | float | ShapeForm | None = None


class LoadFile(StrictForm, frozen=True, kw_only=True):
    """The content of a --load file that is not a CSV table."""

    load: list[LoadForm]


def loads_of(
    source: str, folder: Path, forms: Iterable[LoadForm], inventory: Inventory, start: Instant
) -> WorkloadLoads:
    """Return the load of each workload; the load curves begin at `start`.

    `source` is the file with the `forms`; CSV files are relative to `folder`. Raises InputError.
    """
    collected = _Collection(inventory, start)
    for number, form in enumerate(forms):
        where = f"load[{number}]"
        if (form.workload is None) == (form.csv is None):
            raise InputError(source, "needs either workload or csv", field=where)
        stated = {"cpu": form.cpu, "memory": form.memory}
        given = {name: shape for name, shape in stated.items() if shape is not None}
        if form.csv is not None:
            if given:
                problem = "cannot be combined with cpu or memory"
                raise InputError(source, problem, field=f"{where}.csv")
            collected.add_table(str(folder / form.csv))
            continue
        if not given:
            raise InputError(source, "needs cpu or memory", field=where)
        for name, shape in given.items():
            curve = _Shape(source, f"{where}.{name}", name).curve(shape, start)
            try:
                collected.add(where, form.workload or "", name, curve)
            except InputError as cause:
                raise InputError(source, cause.problem, field=f"{where}.workload") from None
    return collected.loads


def read_loads(path: str, inventory: Inventory, start: Instant) -> WorkloadLoads:
    """Return the loads in the file of --load: a CSV table or `load: […]`.

    `inventory` contains the workloads; the load curves begin at `start`. Raises InputError.
    """
    if path.endswith(".csv"):
        collected = _Collection(inventory, start)
        collected.add_table(path)
        return collected.loads
    document = _as_file(read_one(path))
    with with_lines(document):
        found = decode_strictly(document, LoadFile)
        if not found.load:
            raise InputError(path, _NO_LOAD)
        return loads_of(path, Path(path).parent, found.load, inventory, start)


def _as_file(document: Document) -> Document:
    """Return `document`, or {"load": list} if it contains only a list."""
    if isinstance(document.value, list):
        return Document(document.source, {"load": document.value})
    return document


class _Collection(Struct):
    """Collects the loads of workloads: how much of each resource their pods use over time.

    The load of a workload may be given only once for each resource.
    """

    inventory: Inventory
    start: Instant
    loads: dict[ScaleTargetKey, dict[str, LoadCurve]] = field(default_factory=dict)

    def add(self, where: str, workloads: str, resource: str, curve: LoadCurve) -> None:
        """Add `curve` as the load of all workloads that `workloads` selects. Raises InputError.

        `curve` states how much of `resource` the pods of each workload use. Errors name the place
        `where`.
        """
        for found in self._workloads(where, workloads):
            ref = found.ref
            load = self.loads.setdefault((ref.kind, ref.namespace, ref.name), {})
            if resource in load:
                raise InputError(where, f"the {resource} load of {found.title} is stated twice")
            load[resource] = curve

    def add_table(self, path: str) -> None:
        """Add the loads of a CSV file. Raises InputError."""
        for (workload, resource), (line, points) in _Table(path).curves().items():
            curve = LoadCurve(tuple(_held(points)), self.start)
            self.add(f"{path}: line {line}: workload", workload, resource, curve)

    def _workloads(self, where: str, text: str) -> Iterator[Manifest]:
        for found in self.inventory.select(where, text):
            if found.kind not in _SCALABLE:
                known = ", ".join(kind.kind for kind in _SCALABLE)
                raise InputError(where, f"a {found.kind.kind} cannot have a load; only {known}")
            yield found


# --- shapes --------------------------------------------------------------------------------------


class _Shape(Struct, frozen=True):
    """Reads the load curve of one resource; errors name `source` and the field."""

    source: str
    where: str
    resource: str

    def curve(self, shape: Amount | ShapeForm, start: Instant) -> LoadCurve:
        """Return the curve of `shape`, which begins at `start`. Raises InputError."""
        if not isinstance(shape, ShapeForm):
            return LoadCurve(((0, self._amount(self.where, shape)),), start)
        given = [name for name in ("steps", "ramp", "daily") if getattr(shape, name) is not None]
        if len(given) != 1:
            what = " and ".join(given) or "no shape"
            problem = f"has {what}; expected exactly one of steps, ramp and daily"
            raise InputError(self.source, problem, field=self.where)
        if shape.daily is not None:
            if shape.repeat is not None:
                self._refuse("repeat", "cannot be combined with daily")
            return LoadCurve(tuple(self._daily(shape.daily)), start, DAY)
        kind, held = given[0], shape.steps is not None
        points = self._points(kind, shape.steps or shape.ramp or {})
        period = field_duration(self.source, f"{self.where}.repeat", shape.repeat)
        if period is not None:
            self._check_period(period, kind, points[-1][0])
        return LoadCurve(tuple(_held(points) if held else points), start, period)

    def _check_period(self, period: DurationNs, kind: str, last: DurationNs) -> None:
        """Raise InputError if `period` cannot be the period of a curve whose last time is `last`.

        The last time of a ramp may be the end of the period. The last time of steps must be
        earlier, because a step at the end of the period would have no effect.
        """
        if period == 0:
            self._refuse("repeat", "must be more than 0s")
        if period < last or (period == last and kind == "steps"):
            bound = "later than" if kind == "steps" else "at or after"
            self._refuse("repeat", f"must be {bound} the last time of {kind}")

    def _points(self, kind: str, stated: Mapping[str | int | float, Amount]) -> Points:
        points: dict[DurationNs, int] = {}
        for time, amount in stated.items():
            path = f"{self.where}.{kind}.{time}"
            at = field_duration(self.source, path, _seconds_or_text(str(time)))
            assert at is not None
            if at in points:
                raise InputError(self.source, "is the same time as another one", field=path)
            points[at] = self._amount(path, amount)
        if 0 not in points:
            self._refuse(kind, "needs an amount at 0s")
        return sorted(points.items())

    def _daily(self, form: DailyForm) -> Points:
        low = self._amount(f"{self.where}.daily.low", form.low)
        high = self._amount(f"{self.where}.daily.high", form.high)
        peak = field_duration(self.source, f"{self.where}.daily.peak", form.peak) or 0
        if high < low:
            self._refuse("daily.high", "is less than low")
        if peak > DAY:
            self._refuse("daily.peak", "is more than 24h")
        return [
            (at, low + round((high - low) * (1 + cos(2 * pi * (at - peak) / DAY)) / 2))
            for at in (DAY * part // _DAILY_PARTS for part in range(_DAILY_PARTS + 1))
        ]

    def _amount(self, path: str, stated: Amount) -> int:
        try:
            return parse_amount(self.resource, str(stated))
        except ValueError as cause:
            raise InputError(self.source, str(cause), field=path) from None

    def _refuse(self, name: str, problem: str) -> None:
        raise InputError(self.source, problem, field=f"{self.where}.{name}")


def _seconds_or_text(text: str) -> str | float:
    """Return `text` as a float in seconds if it is a number without a unit, else unchanged."""
    return float(text) if text.replace(".", "", 1).isdecimal() else text


def _held(points: Points) -> Iterator[tuple[DurationNs, int]]:
    """Yield `points` with additional points, so that each amount holds until the next time.

    Curves are linear between their points. To make a step, each time after the first is yielded
    twice: first with the previous amount, then with the new amount.
    """
    before: int | None = None
    for time, amount in points:
        if before is not None:
            yield time, before
        yield time, amount
        before = amount


# --- CSV -----------------------------------------------------------------------------------------

Curves = dict[tuple[str, str], tuple[int, Points]]  # {(workload, resource): (first line, points)}


class _Table(Struct):
    """Reads the CSV file `path`; errors name the line and the column."""

    path: str
    _first: Instant | None = None

    def curves(self) -> Curves:
        """Return (line, points ordered by time) for each curve, keyed by (workload, resource).

        `line` is the first line of the file that contains a point of the curve. Raises InputError.
        """
        text = decode_text(self.path, read_bytes(Path(self.path)))
        header, rows = read_table(self.path, text)
        self._check_header(header)
        found: Curves = {}
        for line, row in rows:
            self._add(found, line, row)
        if not found:
            raise InputError(self.path, _NO_LOAD)
        return found

    def _check_header(self, header: Sequence[str]) -> None:
        for name in header:
            if name not in _COLUMNS:
                known = ", ".join(_COLUMNS)
                raise InputError(self.path, f"has an unknown column {name!r}; known: {known}")
        for name in _COLUMNS[:2]:
            if name not in header:
                raise InputError(self.path, f"has no column {name!r}")

    def _add(self, found: Curves, line: int, row: Mapping[str | Any, Any]) -> None:
        cells = {name: (row.get(name) or "").strip() for name in _COLUMNS}
        if None in row:
            raise self._refusal(line, "", "has more cells than the header")
        at = self._time(line, cells["time"])
        if not cells["workload"]:
            raise self._refusal(line, "workload", "is empty")
        for resource in RESOURCES:
            if not cells[resource]:
                continue
            parse = partial(parse_amount, resource)
            amount = self._read(line, resource, cells[resource], parse)
            _, points = found.setdefault((cells["workload"], resource), (line, []))
            if points and at <= points[-1][0]:
                problem = f"{cells['time']!r} is not later than the row before of this workload"
                raise self._refusal(line, "time", problem)
            points.append((at, amount))

    def _time(self, line: int, text: str) -> DurationNs:
        """Return the time `text` in line `line` as the time since the start of the load.

        A timestamp counts from the first timestamp of the file. Raises InputError.
        """
        if "T" not in text:
            return self._read(line, "time", _seconds_or_text(text), read_duration)
        at = self._read(line, "time", text, parse_timestamp)
        if self._first is None:
            self._first = at
        if at < self._first:
            raise self._refusal(line, "time", f"{text!r} is before the first timestamp")
        return at - self._first

    def _read(self, line: int, column: str, stated: Any, parse: Callable[[Any], int]) -> int:
        try:
            return parse(stated)
        except ValueError as cause:
            raise self._refusal(line, column, str(cause)) from None

    def _refusal(self, line: int, column: str, problem: str) -> InputError:
        where = f"line {line}: {column}: " if column else f"line {line}: "
        return InputError(self.path, f"{where}{problem}")


# --- notes ---------------------------------------------------------------------------------------


def unread_loads(loads: WorkloadLoads, autoscalers: Iterable[Manifest]) -> Iterator[str]:
    """Yield a note about loads that no HorizontalPodAutoscaler reads.

    Objects of other kinds in `autoscalers` are ignored.
    """
    read: dict[ScaleTargetKey, set[str]] = defaultdict(set)
    for target, resources in _read(autoscalers):
        read[target] |= resources
    idle = [key for key, load in loads.items() if not read.get(key, set()) & load.keys()]
    if idle:
        kind, namespace, name = idle[0]
        by = f" by {' or '.join(sorted(loads[idle[0]]))}" if idle[0] in read else ""
        more = f" and {len(idle) - 1:,} more" if len(idle) > 1 else ""
        yield (
            f"No HorizontalPodAutoscaler scales {kind} {namespace}/{name}{by}{more}, so the load "
            "has no effect there."
        )


def _read(autoscalers: Iterable[Manifest]) -> Iterator[tuple[ScaleTargetKey, set[str]]]:
    """Yield the target of each HorizontalPodAutoscaler, and the resources in its metrics."""
    for one in autoscalers:
        if one.kind.resource != HORIZONTAL_POD_AUTOSCALER.resource:
            continue
        spec = one.value.get("spec")
        target = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
        if isinstance(spec, dict) and isinstance(target, dict):
            key = str(target.get("kind")), one.ref.namespace, str(target.get("name"))
            yield key, set(_resources(spec))


def _resources(spec: Json) -> Iterator[str]:
    """Yield the resources in the metrics of an autoscaler; cpu if there are no metrics."""
    metrics = spec.get("metrics")
    if not isinstance(metrics, list) or not metrics:
        # upstream: pkg/apis/autoscaling/v2/defaults.go: SetDefaults_HorizontalPodAutoscaler
        yield CPU
        return
    for metric in metrics:
        for kind in ("resource", "containerResource"):
            source = metric.get(kind) if isinstance(metric, dict) else None
            if isinstance(source, dict):
                yield str(source.get("name"))
