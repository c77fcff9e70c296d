"""VolumeBindingArgs: pluginConfig of VolumeBinding."""

from __future__ import annotations

import msgspec

from fairlead.api.text.field_problem import forbidden, invalid


class VolumeBindingArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`bind_timeout_seconds` is how long a pod waits for its volumes before it is retried.

    `shape` is for scoring by capacity, which upstream has behind a feature gate that is off.
    """

    bind_timeout_seconds: int = 600
    shape: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for settings that upstream refuses."""
        if self.bind_timeout_seconds < 0:
            why = "invalid BindTimeoutSeconds, should not be a negative value"
            raise ValueError(f"bindTimeoutSeconds: {invalid(self.bind_timeout_seconds, why)}")
        if self.shape:
            why = "unexpected field `shape`, remove it or turn on StorageCapacityScoring"
            raise ValueError(f"shape: {forbidden(why)}")
