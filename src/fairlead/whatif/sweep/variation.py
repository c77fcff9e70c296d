"""Variations: a field of a scenario, or a failure in the cluster, and the values that it takes.

seed=0..49                             integers, including both ends
cluster.generated.nodes=80,100,120     a field by its path
settings.scheduler=today.yaml,new.yaml
events[0].for=5m,20m                   a field of the first event
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.text.yaml_documents import YamlError, documents
from fairlead.api.text.yaml_scalar import argument_scalar
from fairlead.whatif.input.error import InputError

VALUES_MAX: Final = 100_000
# A seed can have any size, but reading an integer of thousands of digits is slow.
_RANGE: Final = re.compile(r"(-?[0-9]{1,40})\.\.(-?[0-9]{1,40})")
_STEP: Final = re.compile(r"([^.\[\]]+)|\[([0-9]+)\]")
_PATH: Final = re.compile(r"[^.\[\]]+(\[[0-9]{1,9}\])*(\.[^.\[\]]+(\[[0-9]{1,9}\])*)*")


class Variation(Protocol):
    """A parameter that differs between the cases of a sweep."""

    @property
    def name(self) -> str:
        """The name of the parameter in results, such as `seed` or `lost-node`."""
        ...

    @property
    def values(self) -> Sequence[Any]:
        """The values that the parameter takes, as JSON."""
        ...

    def apply(self, scenario: Json, value: Any) -> Json | None:
        """Return a copy of `scenario` in which the parameter of this variation has `value`.

        Returns None if `scenario` does not allow this value. Raises InputError.
        """
        ...


class FieldVariation(Struct, frozen=True):
    """A variation in which the field at the path `name` takes each of `values`."""

    name: str
    values: tuple[Any, ...]

    def apply(self, scenario: Json, value: Any) -> Json:
        """Return a copy of `scenario` with `value` at the path; missing maps in the path are added.

        Raises InputError.
        """
        changed = copy.deepcopy(scenario)
        steps = [text or int(index) for text, index in _STEP.findall(self.name)]
        at: Any = changed
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            if isinstance(step, int) and not (isinstance(at, list) and step < len(at)):
                raise InputError("--vary", f"the scenario has no item [{step}]", field=self.name)
            if isinstance(step, str) and not isinstance(at, dict):
                raise InputError("--vary", f"{step} is below a value, not a map", field=self.name)
            if following is None:
                at[step] = value
            elif isinstance(step, str) and at.get(step) is None:
                at[step] = {}
            at = at[step]
        return changed


class LossVariation(Struct, frozen=True):
    """A variation over nodes or zones: in each case, one of `values` fails at the time `at`.

    If the value is None, nothing fails. The failure is added to the scenario's `events`. `event` is
    the name of the field in which the added event names the node or zone, such as `fail-node`.
    `parts_of` returns the names of the nodes or zones of a scenario.
    """

    name: str
    event: str
    values: tuple[str | None, ...]
    at: str
    parts_of: Callable[[Json], Collection[str]]

    def apply(self, scenario: Json, value: Any) -> Json | None:
        """Return `scenario` with an event that makes the node or zone `value` fail.

        If `value` is None, `scenario` is returned unchanged. Returns None if `scenario` has no node
        or zone of this name. Raises InputError.
        """
        if value is None:
            return scenario
        if value not in self.parts_of(scenario):
            return None
        events = [*(scenario.get("events") or ()), {"at": self.at, self.event: value}]
        return {**scenario, "events": events}


def parse_variation(text: str) -> FieldVariation:
    """Return the variation in `PATH=VALUE,VALUE,...` or `PATH=FIRST..LAST`. Raises InputError."""
    path, sign, listed = text.partition("=")
    if not sign or not listed or not _PATH.fullmatch(path):
        problem = f"{text!r} is not PATH=VALUES, such as seed=0..9 or cluster.generated.nodes=80,90"
        raise InputError("--vary", problem)
    if ends := _RANGE.fullmatch(listed):
        first, last = int(ends[1]), int(ends[2])
        if not first <= last < first + VALUES_MAX:
            problem = f"{listed} is not a range of 1 to {VALUES_MAX:,} integers"
            raise InputError("--vary", problem, field=path)
        return FieldVariation(path, tuple(range(first, last + 1)))
    try:
        (values,) = documents(f"[{listed}]", plain=argument_scalar)
    except (YamlError, ValueError):
        problem = f"{listed!r} is not a list of values separated by commas"
        raise InputError("--vary", problem, field=path) from None
    if not values:
        raise InputError("--vary", f"{listed!r} contains no value", field=path)
    if any(values.index(one) != at for at, one in enumerate(values)):
        raise InputError("--vary", f"{listed!r} contains a value twice", field=path)
    return FieldVariation(path, tuple(values))
