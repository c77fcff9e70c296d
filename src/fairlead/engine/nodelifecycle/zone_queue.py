"""ZoneQueue: which nodes of a zone are to be emptied next, at the zone's rate.

A name that was added is *known* until it is removed, and cannot be added again; it *waits* until it
was handled. Upstream's monitor pass removes and adds every unready node whose taint is missing, so
that the time of its entry is always that of the last pass. Here such entries are `kept fresh`
without being touched: they share the time of the last pass, whatever it is, and stand in order of
their names; the others stand before them with the time they were last fresh.

                        add                      take (a token was there)
    unknown ────────────────────▶ waiting ─────────────────────────▶ handled
       ▲                             │ remove                            │ remove
       └─────────────────────────────┴───────────────────────────────────┘

upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go, with entries of equal time
in order of their names instead of at random
"""

from __future__ import annotations

from bisect import bisect_left, insort

from fairlead.engine.core.instant import Instant
from fairlead.engine.nodelifecycle.token_bucket import (
    Limiter,
    NeverLimiter,
    TokenBucket,
    as_float32,
)


class ZoneQueue:
    """Entries in the order in which they will be handled; `limiter` says when."""

    def __init__(self, limiter: Limiter) -> None:
        """Start empty."""
        self.limiter = limiter
        self._dated: list[tuple[Instant, str]] = []
        self._fresh: list[str] = []
        self._due: dict[str, Instant | None] = {}  # every known name; None while it is fresh
        self._waiting: set[str] = set()  # never iterated

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def is_known(self, name: str) -> bool:
        """Whether `name` waits or was handled and not removed since."""
        return name in self._due

    def keep_fresh(self, name: str) -> None:
        """Let `name` wait with the time of the last pass from now on, whatever it did before."""
        if name in self._waiting and self._due[name] is None:
            return
        self.remove(name)
        self._due[name] = None
        self._waiting.add(name)
        insort(self._fresh, name)

    def let_age(self, name: str, last_fresh: Instant) -> None:
        """Passes no longer touch the entry of `name`, the last one that did was `last_fresh`."""
        if name in self._waiting and self._due[name] is None:
            self._take_out(name)
            self._put_in(name, last_fresh)

    def add(self, name: str, now: Instant) -> None:
        """Let `name` wait from `now`, unless it is known."""
        if name not in self._due:
            self._put_in(name, now)

    def mark_handled(self, name: str) -> None:
        """`name` was handled before, so adding it does nothing."""
        self._due.setdefault(name, 0)

    def remove(self, name: str) -> None:
        """Forget `name`."""
        if name in self._waiting:
            self._take_out(name)
        self._due.pop(name, None)

    def head(self, last_pass: Instant) -> str | None:
        """Who is next, None when nobody waits; fresh entries date from `last_pass`."""
        if not self._dated:
            return self._fresh[0] if self._fresh else None
        if self._fresh and (last_pass, self._fresh[0]) < self._dated[0]:
            return self._fresh[0]
        return self._dated[0][1]

    def finish(self, name: str) -> None:
        """`name` was handled: it no longer waits and stays known."""
        self._take_out(name)
        self._due[name] = 0

    def retry(self, name: str, due: Instant) -> None:
        """`name` could not be handled; it waits with the time `due`."""
        if name in self._waiting:
            self._take_out(name)
        self._put_in(name, due)

    def due_of(self, name: str) -> Instant | None:
        """The time of a dated entry, None for a fresh one."""
        return self._due[name]

    def _put_in(self, name: str, due: Instant) -> None:
        self._due[name] = due
        self._waiting.add(name)
        insort(self._dated, (due, name))

    def _take_out(self, name: str) -> None:
        self._waiting.discard(name)
        due = self._due[name]
        if due is None:
            del self._fresh[bisect_left(self._fresh, name)]
        else:
            del self._dated[bisect_left(self._dated, (due, name))]

    # --- the rate ------------------------------------------------------------------------------

    def swap_limiter(self, rate: float, never_rate: float, now: Instant) -> None:
        """Change the rate; a limiter of that rate stays.

        Where the old one refuses at this instant the new one starts empty, else full (and the old
        token is gone, which nobody notices). `never_rate` is what a stopped limiter gives as its
        rate.
        """
        # upstream: rate_limited_queue.go:SwapLimiter
        if self.limiter.rate == as_float32(rate):
            return
        if rate <= 0:
            self.limiter = NeverLimiter(never_rate)
            return
        bucket = TokenBucket(rate, now)
        if not self.limiter.try_accept(now):
            bucket.try_accept(now)
        self.limiter = bucket
