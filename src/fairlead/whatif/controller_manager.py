"""kube-controller-manager's options, as its flags, for all that happens to quiet nodes.

Whatever run is asked for, the controllers take over from others of their kind: the first list of
nodes is no news to them, so no node is looked at as if the controller manager had just started.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.flag import FlagError, config_of_flags
from fairlead.engine.nodelifecycle.profile import PROFILES, V1_36
from fairlead.whatif.input_error import InputError

DEFAULT: Final = NodeLifecycleConfig(is_taking_over=True)


def controller_manager(
    version: str, flags: Mapping[str, str], *, source: str = "", of_version: str, prefix: str
) -> NodeLifecycleConfig:
    """The configuration for `flags` (names without dashes) of that version, "" for the newest.

    Raises InputError in the name of `source`; `of_version` is where the version stands, and
    `prefix` what stands before a flag's name: an option, or a field of the file `source`.
    """
    profile = PROFILES.get(version or V1_36.version)
    if profile is None:
        known = ", ".join(sorted(PROFILES))
        raise _refusal(source, of_version, f"{version!r} is no version known here; known: {known}")
    try:
        return replace(config_of_flags(flags, profile), is_taking_over=True)
    except FlagError as refused:
        raise _refusal(source, f"{prefix}{refused.flag}", refused.problem) from None


def _refusal(source: str, place: str, problem: str) -> InputError:
    return InputError(source, problem, field=place) if source else InputError(place, problem)
