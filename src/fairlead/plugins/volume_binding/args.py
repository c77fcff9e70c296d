"""VolumeBindingArgs: pluginConfig of VolumeBinding."""

from __future__ import annotations

import msgspec


class VolumeBindingArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`bind_timeout_seconds` is how long a pod waits for its volumes before it is tried again.

    `shape` belongs to scoring by capacity, which upstream has behind a gate that is off.
    """

    bind_timeout_seconds: int = 600
    shape: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for settings that upstream refuses."""
        if self.bind_timeout_seconds < 0:
            raise ValueError(
                "bindTimeoutSeconds: invalid BindTimeoutSeconds, should not be negative"
            )
        if self.shape:
            raise ValueError("shape: may not be set while StorageCapacityScoring is off")
