"""ResourceColumns: maps resource names to column numbers, so that requests are vectors.

cpu (millicores), memory and ephemeral-storage (bytes) have fixed columns. Every other resource gets
the next free column when it is first used, and keeps it. The resource "pods" has no column; the
pods on a node are counted separately.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import ResourceList
from fairlead.api.quantity import milli_value, whole_value

CPU: Final = 0
MEMORY: Final = 1
EPHEMERAL_STORAGE: Final = 2
FIRST_SCALAR: Final = 3
_FIXED: Final = ("cpu", "memory", "ephemeral-storage")
PODS: Final = "pods"


class ResourceColumns:
    """The growing table of resource names; each cluster has one."""

    def __init__(self) -> None:
        """Start with the fixed columns."""
        self.names: list[str] = list(_FIXED)
        self._index: dict[str, int] = {name: i for i, name in enumerate(_FIXED)}

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.names)

    def column(self, name: str) -> int:
        """Return the column of resource `name`; a new resource gets the next column."""
        found = self._index.get(name)
        if found is None:
            found = self._index[name] = len(self.names)
            self.names.append(name)
        return found

    def amounts(self, requests: dict[str, int]) -> tuple[tuple[int, int], ...]:
        """Return (column, amount) of each resource in `requests` except "pods", in column order."""
        return tuple(
            sorted((self.column(name), amount) for name, amount in requests.items() if name != PODS)
        )


def allocatable_amount(name: str, resources: ResourceList) -> int:
    """Return the amount of `name` in `resources`; 0 if `resources` does not contain `name`.

    cpu is in millicores, all other resources are in whole units.
    """
    text = resources.get(name)
    if text is None:
        return 0
    return milli_value(text) if name == "cpu" else whole_value(text)
