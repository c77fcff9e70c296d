"""The cases of a sweep: scenarios that differ in the values of its variations."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import msgspec
from msgspec import Struct

from fairlead.api.json import Json
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.seeded_choice import draws
from fairlead.whatif.sweep.variation import Variation

CASES_MAX: Final = 100_000
_CASES: Final = 5  # purpose of the random draws


class Case(Struct, frozen=True):
    """One run of a sweep: its number from 1, the values of its parameters, and the scenario."""

    number: int
    parameters: Mapping[str, Any]
    scenario: Json

    @property
    def title(self) -> str:
        """The parameters as text: `seed=7, lost=zone-a`."""
        return ", ".join(f"{name}={value_text(value)}" for name, value in self.parameters.items())

    def digest(self, files: str, code: str) -> str:
        """Return a digest of everything that determines the result of the case.

        `files` is the digest of the scenario's files. `code` identifies the version of Fairlead and
        of the installed plugins.
        """
        encoded = msgspec.json.encode(self.scenario, order="deterministic")
        return hashlib.sha256(encoded + f"{files}\0{code}".encode()).hexdigest()[:32]


def value_text(value: Any) -> str:
    """Return a parameter's value as text for users; "none" for null."""
    match value:
        case None:
            return "none"
        case str():
            return value
        case _:
            return msgspec.json.encode(value).decode()


def cases_of(
    scenario: Json, variations: Sequence[Variation], sample: int | None = None, seed: int = 0
) -> list[Case]:
    """Return a case for each combination of values; the first variation changes slowest.

    If `sample` is a number, at most that many combinations are chosen at random, with `seed`. The
    chosen combinations keep their order. Then, combinations that the scenario does not allow are
    left out. So there may be fewer than `sample` cases. Raises InputError.
    """
    sizes = [len(one.values) for one in variations]
    total = prod(sizes)
    if sample is not None and sample < total:
        chosen = _sampled(total, sample, seed)
    elif total > CASES_MAX:
        problem = f"these values make {total:,} cases; --random N takes a sample of them"
        raise InputError("--vary", problem)
    else:
        chosen = list(range(total))
    combinations = product(*(one.values for one in variations)) if len(chosen) == total else None
    cases: list[Case] = []
    for index in chosen:
        values = _at(index, variations) if combinations is None else next(combinations)
        changed: Json | None = scenario
        for variation, value in zip(variations, values, strict=True):
            changed = None if changed is None else variation.apply(changed, value)
        if changed is not None:
            parameters = {one.name: value for one, value in zip(variations, values, strict=True)}
            cases.append(Case(len(cases) + 1, parameters, changed))
    return cases


def _sampled(total: int, count: int, seed: int) -> list[int]:
    """Return `count` different numbers from 0 to `total` - 1, sorted (Floyd's algorithm)."""
    found: set[int] = set()
    for last, draw in zip(range(total - count, total), draws(seed, _CASES), strict=False):
        number = draw % (last + 1)
        found.add(last if number in found else number)
    return sorted(found)


def _at(index: int, variations: Sequence[Variation]) -> list[Any]:
    """Return the combination at `index`, in the order of `itertools.product`."""
    values = []
    for variation in reversed(variations):
        index, at = divmod(index, len(variation.values))
        values.append(variation.values[at])
    return values[::-1]
