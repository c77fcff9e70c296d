"""DomainCounts: the number of matching pods in each topology domain, kept up to date.

A domain is a value of a node label. A domain is identified by the value's id in the label's column
(`engine.state.label_column`). Every added or removed pod updates the sums, so reading the sums
needs no computation. The row of a node in the table of nodes can get another domain when a node is
added or removed, or when its labels or taints change. In this case, `refresh` subtracts the pods on
the row from the sum of the old domain, and adds them to the sum of the new domain.

Example: a node of zone a is removed. The pods of the node were removed before, so the sum of zone a
no longer includes them. `refresh` finds that the node's row has no domain any more. No counted pod
is on this row, so the sums stay the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from fairlead.engine.state.change_log import ChangeLog
from fairlead.engine.state.label_column import ABSENT, Domains, Ids
from fairlead.engine.state.pod_class import PodLocations

Ints = npt.NDArray[np.int64]
_LOWEST_KEPT: Final = 8
_MOVED_MAX: Final = 16  # if more rows change their domain, all pods are added up again


class NodeEpoch:
    """The version of data that is derived from Node objects.

    `value` increases when a node is added or removed, or when the labels of a node change. There
    are two NodeEpochs, `PodIndex.nodes` and `PodIndex.labels`. The value of `PodIndex.nodes` also
    increases when the taints of a node change.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        """Start at 0."""
        self.value = 0

    def advance(self) -> None:
        """Increase `value`, so that data derived from nodes is recomputed."""
        self.value += 1


class DomainCounts:
    """For each topology domain, the sum of the weights of its pods.

    The pods come from the attached `PodLocations`. All pods of a PodLocations have the same weight.

    `sums` has an entry per domain. A further entry at the end stays 0, so that index -1 (ABSENT)
    reads 0. `pods` is the number of counted pods, regardless of weight. Call `refresh` before
    reading.

    Invariant if `_read` is not -1: `sums` and `pods` equal what `_add_up` would compute for the
    domains `_ids`. `_ids` are the domains of the nodes at the last call of `refresh`.
    """

    __slots__ = ("_additions", "_domains", "_epoch", "_ids", "_read", "_sign_changes", "_sources",
                 "pods", "sums")  # fmt: skip

    def __init__(self, epoch: NodeEpoch, domains: Callable[[], Domains]) -> None:
        """Start without pods; `domains` returns the current domain of the node at each row.

        The value that `domains` returns must not change later. `refresh` calls `domains` again if
        `epoch` has advanced, or if `attach` has added pods.
        """
        self._epoch = epoch
        self._domains = domains
        self._read = -1
        self._additions = 0
        self._sign_changes: ChangeLog[int] = ChangeLog()
        self._sources: dict[PodLocations, int] = {}
        self._ids: Ids = np.zeros(0, np.int64)
        self.sums: Ints = np.zeros(1, np.int64)
        self.pods = 0

    def attach(self, source: PodLocations, weight: int) -> None:
        """Count the pods at `source` from now on, each with `weight`.

        If `source` is already attached, `weight` is added to its previous weight.
        """
        before = self._sources.get(source)
        if before is not None:
            source.ignore(self)
            weight += before
        source.counters.append((self, weight))
        self._sources[source] = weight
        if source.rows:
            self._read = -1

    def release(self, source: PodLocations) -> None:
        """Remove `source`, which has no pods and will never have pods again."""
        del self._sources[source]

    def detach(self) -> None:
        """Stop counting; this object must not be used afterwards."""
        for source in self._sources:
            source.ignore(self)
        self._sources.clear()
        self._read = -1

    def sources(self) -> Iterable[PodLocations]:
        """Return the locations of all counted pods."""
        return self._sources

    def count(self, row: int, weight: int, pods: int) -> None:
        """Update the sums after pods were added to the node at `row`, or removed from it.

        `pods` is the number of added pods; it is negative if pods were removed. `weight` is the
        amount to add to the sum of the node's domain.
        """
        if self._read >= 0 and row < len(self._ids):
            domain = self._ids[row]
            if domain >= 0:
                self._change(int(domain), weight, pods)

    def _change(self, domain: int, weight: int, pods: int) -> None:
        before = int(self.sums[domain])
        self.sums[domain] = after = before + weight
        self.pods += pods
        if (before > 0) != (after > 0):
            self._sign_changes.append(domain)

    def refresh(self) -> DomainCounts:
        """Update `sums` and `pods` if nodes changed or `attach` added pods; return self."""
        if self._read != self._epoch.value:
            domains = self._domains()
            if self._read < 0 or not self._move(domains):
                self._add_up(domains)
            self._read = self._epoch.value
        return self

    def _move(self, domains: Domains) -> bool:
        """Replace `_ids` by `domains.ids`; update the sums for nodes that get another domain.

        Returns False, and changes nothing, if there are too many such nodes.
        """
        before, after = self._ids, domains.ids
        added = len(after) - len(before)
        if added:
            before = np.append(before, np.full(added, ABSENT, np.int64))
        rows = np.flatnonzero(before != after).tolist()
        if len(rows) > _MOVED_MAX:
            return False
        missing = domains.size + 1 - len(self.sums)
        if missing:
            self.sums = np.append(self.sums, np.zeros(missing, np.int64))
        self._ids = after
        for row in rows:
            for source, weight in self._sources.items():
                pods = source.rows.get(row, 0)
                if pods and before[row] != ABSENT:
                    self._change(int(before[row]), -weight * pods, -pods)
                if pods and after[row] != ABSENT:
                    self._change(int(after[row]), weight * pods, pods)
        return True

    def log_position(self) -> tuple[int, int]:
        """Return the current position in the log, for a later call of `sign_changes_since`."""
        return self._additions, self._sign_changes.position

    def sign_changes_since(self, seen: tuple[int, int]) -> list[int] | None:
        """Return the domains whose sum became positive, or stopped being positive, since `seen`.

        `seen` is an earlier result of `log_position`. A domain can occur more than once. Returns
        None if all sums were recomputed since then, or if the log has dropped changes.
        """
        additions, position = seen
        return self._sign_changes.since(position) if additions == self._additions else None

    def sums_over(self, counted_rows: npt.NDArray[np.bool_]) -> Ints:
        """Return the sums by domain; count only the pods on nodes marked in `counted_rows`."""
        domains = self._domains()
        sums = np.zeros(domains.size + 1, np.int64)
        for source, weight in self._sources.items():
            for row, pods in source.rows.items():
                if counted_rows[row] and domains.ids[row] != ABSENT:
                    sums[domains.ids[row]] += weight * pods
        return sums

    def _add_up(self, domains: Domains) -> None:
        self._additions += 1
        self._ids = domains.ids
        sources = self._sources
        rows = [row for source in sources for row in source.rows]
        pods = [n for source in sources for n in source.rows.values()]
        weights = [w * n for source, w in sources.items() for n in source.rows.values()]
        at = domains.ids[np.array(rows, np.int64)]
        counted = at != ABSENT
        # Floats hold these sums exactly: they stay far below 2^53.
        totals = np.bincount(at[counted], np.array(weights, np.float64)[counted], domains.size + 1)
        self.sums = totals.astype(np.int64)
        self.pods = int(np.array(pods, np.int64)[counted].sum())

    def of(self, domain: int) -> int:
        """Return the sum of one domain; 0 for ABSENT."""
        return int(self.sums[domain])

    def by_domain(self) -> Ints:
        """Return the sums by domain, with a last entry for ABSENT; do not change the array."""
        return self.sums

    def total(self) -> int:
        """Return the sum over all domains; all pods must be counted with weight 1."""
        return self.pods

    def hypothetical(self) -> HypotheticalCounts:
        """Return a copy for hypothetical changes; later real changes do not affect it."""
        return HypotheticalCounts(_Copied(self.sums.copy(), self.pods))

    def validate(self) -> None:
        """Recompute the sums; raises AssertionError if a stored sum was wrong."""
        if self._read == self._epoch.value:
            sums, pods = self.sums, self.pods
            self._add_up(self._domains())
            # Some interned values may be on no node by now; no pods count there.
            assert np.array_equal(sums[:-1], self.sums[: len(sums) - 1]), (sums, self.sums)
            assert not sums[-1]
            assert not self.sums[len(sums) - 1 :].any()
            assert pods == self.pods, (pods, self.pods)


class _Copied:
    """The counts by domain at one moment; `lowest` caches the result of `lowest_of`."""

    __slots__ = ("lowest", "pods", "sums")

    def __init__(self, sums: Ints, pods: int) -> None:
        self.sums = sums
        self.pods = pods
        self.lowest: list[tuple[int, int]] = []

    def lowest_of(self, domains: Ids) -> list[tuple[int, int]]:
        """Return (domain, count) for the `domains` with the lowest counts, lowest first.

        The result has at most 8 entries. Every call must pass the same `domains`.
        """
        if not self.lowest:
            counts = self.sums[domains]
            kept = min(_LOWEST_KEPT, len(domains))
            at = np.argpartition(counts, kept - 1)[:kept]
            at = at[np.argsort(counts[at], kind="stable")]
            self.lowest = list(zip(domains[at].tolist(), counts[at].tolist(), strict=True))
        return self.lowest


class HypotheticalCounts:
    """The counts of a `DomainCounts` at one moment, plus hypothetical changes."""

    __slots__ = ("_copied", "changes")

    def __init__(self, copied: _Copied) -> None:
        """Start without changes; create instances with `DomainCounts.hypothetical`."""
        self._copied = copied
        self.changes: dict[int, int] = {}

    def hypothetical(self) -> HypotheticalCounts:
        """Return a copy; later changes of this object do not affect the copy, and vice versa."""
        copy = HypotheticalCounts(self._copied)
        copy.changes = dict(self.changes)
        return copy

    def change(self, domain: int, by: int) -> None:
        """Add `by` to the count of `domain` hypothetically; adding `-by` undoes this."""
        left = self.changes.get(domain, 0) + by
        if left:
            self.changes[domain] = left
        else:
            self.changes.pop(domain, None)

    def of(self, domain: int) -> int:
        """Return the count of one domain; 0 for ABSENT."""
        return int(self._copied.sums[domain]) + self.changes.get(domain, 0)

    def by_domain(self) -> Ints:
        """Return the counts by domain; the last entry is for ABSENT.

        The caller must not change the array.
        """
        if not self.changes:
            return self._copied.sums
        changed = self._copied.sums.copy()
        for domain, by in self.changes.items():
            changed[domain] += by
        return changed

    def lowest(self, domains: Ids) -> int:
        """Return the lowest count among `domains`.

        `domains` must be the same in each call, must not be empty, and must contain all domains in
        `changes`.
        """
        changes = self.changes
        if not changes:
            return int(np.minimum.reduce(self._copied.sums.take(domains)))
        lowest = self._copied.lowest_of(domains)
        changed = min(self.of(domain) for domain in changes)
        for domain, count in lowest:
            if domain not in changes:
                return min(count, changed)
        return changed if len(lowest) == len(domains) else int(self.by_domain()[domains].min())

    def total(self) -> int:
        """Return the sum over all domains; all pods must be counted with weight 1."""
        return self._copied.pods + sum(self.changes.values())
