"""overcommit: admits groups up to a multiple of the cluster's capacity.

    arguments: {overcommit-factor: 1.2, overcommit-factor.nvidia.com/gpu: 1.0}

upstream: volcano: pkg/scheduler/plugins/overcommit/overcommit.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fairlead.engine.batch.info.job import JobInfo
from fairlead.engine.batch.plugins.argument import ArgumentReader
from fairlead.engine.batch.shares.share import cluster_total, needs_of, outstanding
from fairlead.engine.state.resource_columns import ResourceColumns

if TYPE_CHECKING:
    from fairlead.engine.batch.session.session import Session

_KEY: Final = "overcommit-factor"
_DEFAULT: Final = 1.2


class Overcommit:
    """Decides which groups may be admitted."""

    name = "overcommit"

    def __init__(self, arguments: Mapping[str, str]) -> None:
        """Read the factors from `arguments`.

        A factor that is not a number or is below 1 is replaced by the default, as in upstream.
        """
        self._factor = _FACTOR.read(arguments, _KEY, _DEFAULT)
        self._factors = {
            key.removeprefix(f"{_KEY}."): reader.read(arguments, key, _DEFAULT)
            for key, reader in overcommit_readers(arguments).items()
            if key != _KEY
        }
        self._columns = ResourceColumns()
        self._left: dict[int, float] = {}

    def on_session_open(self, session: Session) -> None:
        """Compute how much of each resource is left for groups that this session will admit.

        The amount is the cluster's capacity times the resource's `overcommit-factor`, minus the
        requests of pods, and minus the outstanding minResources of admitted groups.
        """
        table = session.table
        self._columns = table.resources
        counted = table.alive & ~session.room.is_left_out
        self._left = {}
        for column, whole in cluster_total(session.room, session.rules):
            idle = int(session.room.idle[column, counted].sum())
            factor = self._factors.get(table.resources.names[column], self._factor)
            self._left[column] = whole * factor - (whole - idle)
        for job in session.jobs.values():
            self._take(outstanding(job, self._columns))

    def _take(self, amounts: tuple[tuple[int, int], ...]) -> None:
        for column, amount in amounts:
            self._left[column] = self._left.get(column, 0) - amount

    def job_enqueueable(self, job: JobInfo) -> bool:
        """Return whether every resource in the group's minResources is still available."""
        needs = needs_of(job, self._columns)
        return all(amount <= self._left.get(column, 0) for column, amount in needs)

    def job_enqueued(self, job: JobInfo) -> None:
        """Subtract the group's minResources from the available resources."""
        self._take(needs_of(job, self._columns))


def overcommit_readers(arguments: Mapping[str, str]) -> dict[str, ArgumentReader[float]]:
    """Return {key of an argument that the plugin reads from `arguments`: its reader}."""
    return {_KEY: _FACTOR, **{key: _FACTOR for key in arguments if key.startswith(f"{_KEY}.")}}


def _parse_factor(text: str) -> float | None:
    try:
        factor = float(text)
    except ValueError:
        return None
    return factor if factor >= 1 else None


_FACTOR: Final = ArgumentReader("a number of at least 1", _parse_factor)
