"""Artificial delays of the post-start hooks.

By default, the hooks of a server act immediately. Only conformance replays set delays. A replay
uses the delays of the recorded server, whose controllers reacted a few milliseconds after the
response to the client.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import asdict


class ReconcileDelay(Struct, frozen=True, kw_only=True):
    """Delays of the post-start hooks in ns, each relative to the previous step."""

    accepted: int = 0  # the condition NamesAccepted of a new CustomResourceDefinition
    # The condition Established of the new definition. If this is 0, both conditions are written
    # together, without a delay.
    established: int = 0
    ending: int = 0  # the condition Terminating of a deleted definition
    # The deletion of the definition's objects. If this is 0, they are deleted without a delay. The
    # condition Terminating is then written only if some of them remain, for example because of
    # finalizers.
    ended: int = 0
    flow_status: int = 0  # the statuses of FlowSchemas
    service_status: int = 0  # the statuses of APIServices

    def slowed(self, times: int) -> ReconcileDelay:
        """Return the delays multiplied by `times`."""
        return ReconcileDelay(**{name: times * delay for name, delay in asdict(self).items()})


NO_DELAY: Final = ReconcileDelay()
