"""ScriptedStep: commands that a what-if or a scenario performs at one instant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.change import commands as make
from fairlead.whatif.change.kubectl_drain import DrainCheck
from fairlead.whatif.snapshot.manifest import Manifest

if TYPE_CHECKING:
    from fairlead.engine.autoscaling.capacity_outage import CapacityOutage
else:
    CapacityOutage = Any  # few runs have an autoscaler; help() evaluates the annotations


class ScriptedStep(Struct, frozen=True):
    """Commands that are performed together, at the time `after`.

    In error messages, `source` and `what` name the option or scenario field.

    In runs with a node autoscaler, `commands_for` is called if it is set, and returns the commands
    that are performed. Runs without a node autoscaler perform `commands`. But if `reads_nodes` is
    set, every run calls `commands_for`.
    """

    # The time (ns) from the moment at which a what-if makes its change, or from the start of a
    # scenario's run.
    after: DurationNs
    commands: tuple[Command, ...]
    source: str
    what: str
    # The argument is the list of the nodes that exist when the step is performed. If it raises
    # InputError, for example because a node is gone, `commands` are performed instead.
    commands_for: Callable[[Sequence[Json]], tuple[Command, ...]] | None = None
    # An outage of the autoscaler's provider; its times count from the step.
    capacity_outage: CapacityOutage | None = None
    reads_nodes: bool = False  # whether the commands depend on the present state of the nodes
    # If set, the step drains a node. If kubectl would then refuse the drain, the node is only
    # cordoned.
    drain_check: DrainCheck | None = None

    @classmethod
    def creating(cls, after: DurationNs, manifest: Manifest) -> ScriptedStep:
        """Return the step that creates `manifest` at the time `after`, which the field explains."""
        return cls(after, (make.create(manifest),), manifest.source, manifest.title)
