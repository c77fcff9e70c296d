"""Slack: the tolerance with which resource amounts are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.engine.state.resource_columns import CPU, MEMORY

_MIB: Final = 1024 * 1024
_LEAST_PART: Final = 0.01  # resource_info.go: minMilliScalarResources, in units


@dataclass(frozen=True, slots=True)
class Slack:
    """`a` fits into `b` if `a < b + least`; an amount below `least` counts as nothing.

    `cpu_milli` and `memory_bytes` are the tolerances of these resources; for any other it is 1.
    """

    cpu_milli: int = 1
    memory_bytes: int = 1

    def least(self, column: int) -> int:
        """The smallest amount of the resource in `column` that counts."""
        if column == CPU:
            return self.cpu_milli
        return self.memory_bytes if column == MEMORY else 1

    def least_part(self, column: int) -> float:
        """Like `least`, for amounts that are shares and may be fractions."""
        return self.least(column) if column in (CPU, MEMORY) else _LEAST_PART


NO_SLACK: Final = Slack()
# upstream: pkg/scheduler/api/resource_info.go: minMilliCPU, minMemory
KUBE_BATCH_SLACK: Final = Slack(cpu_milli=10, memory_bytes=10 * _MIB)
