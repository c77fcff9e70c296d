"""DynamicResourcesArgs: timeouts for allocating devices.

Both fields are accepted and have no effect: a decision takes no time here, and nothing waits for
devices.
upstream: apis/config/types_pluginargs.go, validation/validation_pluginargs.go
"""

from __future__ import annotations

from typing import Final

import msgspec

from fairlead.api.text.field_problem import invalid
from fairlead.api.timestamp import parse_duration

_ONE_SECOND: Final = 1_000_000_000


class DynamicResourcesArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The plugin's timeouts, as Go durations."""

    filter_timeout: str | None = None
    binding_timeout: str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError naming the field."""
        if _is_below("filterTimeout", self.filter_timeout, 0):
            problem = invalid(self.filter_timeout, "must be zero or positive")
            raise ValueError(f"filterTimeout: {problem}")
        if _is_below("bindingTimeout", self.binding_timeout, _ONE_SECOND):
            problem = invalid(self.binding_timeout, "must be at least 1 second")
            raise ValueError(f"bindingTimeout: {problem}")


def _is_below(field: str, given: str | None, least: int) -> bool:
    try:
        return given is not None and parse_duration(given) < least
    except ValueError as cause:
        raise ValueError(f"{field}: {invalid(given, str(cause))}") from None
