"""ConfigurationError: what a configuration says cannot be done."""

from __future__ import annotations


class ConfigurationError(ValueError):
    """`field` is a path in the file, such as `profiles[0].schedulerName`."""

    def __init__(self, field: str, problem: str) -> None:
        """Keep the evidence."""
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


def at(where: str, field: str) -> str:
    """The path of `field` within `where`, which is "" for the file itself."""
    return f"{where}.{field}" if where else field
