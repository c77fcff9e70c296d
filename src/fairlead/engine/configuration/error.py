"""ConfigurationError: an invalid field of a configuration."""

from __future__ import annotations


class ConfigurationError(ValueError):
    """A field of a configuration is invalid.

    `field` is a path in the file, such as `profiles[0].schedulerName`.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


def at(where: str, field: str) -> str:
    """Return the path of `field` within `where`; `where` is "" for the top level."""
    return f"{where}.{field}" if where else field
