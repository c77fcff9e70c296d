"""with_plugin: where a user's plugin stands in a profile that does not mention it.

Behind the profile's own plugins, at every extension point at which it takes part. Two of
Fairlead's would leave it nothing to do: there is one order of the queue, so a QueueSort plugin
takes PrioritySort's place; and DefaultBinder binds every pod, so it comes last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fairlead.engine.framework.profile import Profile

QUEUE_SORT: Final = "PrioritySort"
LAST: Final = "DefaultBinder"


def with_plugin(profile: Profile, name: str, plugin: type, weight: int) -> Profile:
    """`profile` with the class `plugin` under `name`; its scores count `weight` times."""
    sorts_queue = hasattr(plugin, "sort_key")
    others = [one for one in profile.plugins if not (sorts_queue and one[0] == QUEUE_SORT)]
    end = next((at for at, (other, _) in enumerate(others) if other == LAST), len(others))
    return replace(profile, plugins=(*others[:end], (name, weight), *others[end:]))
