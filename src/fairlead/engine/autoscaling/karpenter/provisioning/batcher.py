"""Batcher: decides when provisioning passes run, by a batch window and its triggers.

    trigger          pod that is provisionable, or Node with the taint karpenter.sh/disrupted
    window           opens at a new trigger; by default, closes one second after the last new
                     trigger, but at the latest ten seconds after the first
    repetition       while there are triggers, a pass runs 10 s after a change of the cluster

Upstream repeats passes every 10 s while there are triggers, even if nothing changes. Here, the
passes without a change are skipped. The nominations that a skipped pass would renew are kept (see
`renewed`).

upstream: pkg/controllers/provisioning/{batcher,controller}.go
"""

from __future__ import annotations

from typing import Final

from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.core.instant import DurationNs, Instant, seconds

_RETRIGGER_NS: Final[DurationNs] = seconds(10)


class Batcher:
    """Collects triggers and decides when the next provisioning pass runs."""

    def __init__(self, options: KarpenterOptions) -> None:
        self._options = options
        self._triggers: set[str] = set()
        # the times of the first and the last new trigger; None if the window is closed
        self._window: tuple[Instant, Instant] | None = None
        self._retry_at: Instant | None = None
        self._last_pass: Instant | None = None

    @property
    def has_triggers(self) -> bool:
        """Whether triggers are left."""
        return bool(self._triggers)

    def add(self, trigger: str, now: Instant) -> None:
        """Open or extend the batch window if `trigger` is new.

        A trigger is the key of a pod (`namespace/name`) or the name of a Node.
        """
        if trigger not in self._triggers:
            self._triggers.add(trigger)
            first = now if self._window is None else self._window[0]
            self._window = first, now

    def discard(self, trigger: str) -> bool:
        """Remove a trigger; return whether no trigger is left.

        If the batch window is open, it stays open. Returns False if `trigger` is not one of the
        triggers.
        """
        if trigger not in self._triggers:
            return False
        self._triggers.remove(trigger)
        return not self._triggers

    def change(self, now: Instant) -> None:
        """Schedule a provisioning pass 10 s after a change of the cluster at `now`.

        Does nothing if there are no triggers (see the module docstring), or if a pass is already
        scheduled.
        """
        if self._triggers and self._retry_at is None and self._window is None:
            self._retry_at = now + _RETRIGGER_NS

    def due(self) -> Instant | None:
        """Return the time of the next pass; None if no pass is scheduled."""
        if self._window is None:
            return self._retry_at
        first, last = self._window
        options = self._options
        return min(last + seconds(options.batch_idle_s), first + seconds(options.batch_max_s))

    def start_pass(self, now: Instant) -> None:
        """Close the window and record that a pass runs at `now`."""
        self._window = self._retry_at = None
        self._last_pass = now

    def renewed(self, now: Instant) -> Instant:
        """Return the time of the last provisioning pass that upstream would have run up to `now`.

        After the last simulated pass, upstream would have run a pass every 10 s. If no pass has
        run, returns `now`.
        """
        since = now if self._last_pass is None else self._last_pass
        return now - (now - since) % _RETRIGGER_NS
