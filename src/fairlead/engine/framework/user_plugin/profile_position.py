"""with_plugin: adds a user's plugin to a profile that does not mention it.

It runs after the profile's own plugins, at every extension point it implements. There are two
exceptions: the queue has only one order, so a QueueSort plugin replaces PrioritySort; and
DefaultBinder binds every pod, so it stays last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fairlead.engine.framework.profile import Profile

QUEUE_SORT: Final = "PrioritySort"
LAST: Final = "DefaultBinder"


def with_plugin(profile: Profile, name: str, plugin: type, weight: int) -> Profile:
    """`profile` with the class `plugin` added under `name`; its scores have weight `weight`."""
    sorts_queue = hasattr(plugin, "sort_key")
    others = [one for one in profile.plugins if not (sorts_queue and one[0] == QUEUE_SORT)]
    end = next((at for at, (other, _) in enumerate(others) if other == LAST), len(others))
    return replace(profile, plugins=(*others[:end], (name, weight), *others[end:]))
