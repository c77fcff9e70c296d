"""Slack: amounts below which a difference does not count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.state.resource_columns import CPU, MEMORY

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Slack:
    """Amounts are compared as `a < b + least`, and an amount below `least` counts as nothing.

    `cpu_milli` and `memory_bytes` are the least amounts of these; any other resource has 1.
    """

    cpu_milli: int = 1
    memory_bytes: int = 1

    def least(self, column: int) -> int:
        """The smallest amount of the resource in `column` that counts."""
        if column == CPU:
            return self.cpu_milli
        return self.memory_bytes if column == MEMORY else 1


NO_SLACK: Final = Slack()
# upstream: pkg/scheduler/api/resource_info.go: minMilliCPU, minMemory. Its third constant, 10
# milli-units of anything else, is less than the unit that all else is counted in here.
KUBE_BATCH_SLACK: Final = Slack(cpu_milli=10, memory_bytes=10 * _MIB)
