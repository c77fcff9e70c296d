"""Builds the configuration of the node controllers from kube-controller-manager's flags.

The controllers of a run take over from running ones (`is_taking_over`): nodes and taints of the
snapshot are not treated as new, as they would be after a restart of kube-controller-manager.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.flag import FlagError, config_of_flags
from fairlead.engine.nodelifecycle.profile import PROFILES, V1_36
from fairlead.whatif.input.error import InputError

DEFAULT: Final = NodeLifecycleConfig(is_taking_over=True)


def controller_manager(
    version: str, flags: Mapping[str, str], *, source: str = "", of_version: str, prefix: str
) -> NodeLifecycleConfig:
    """The configuration for `flags` (names without dashes) of a version; "" is the newest.

    Raises InputError, naming `source` if the flags come from a file. `of_version` is the option or
    field of the version, `prefix` precedes the name of a flag in messages.
    """
    profile = PROFILES.get(version or V1_36.version)
    if profile is None:
        known = ", ".join(sorted(PROFILES))
        raise _refusal(source, of_version, f"unknown version {version!r}; known: {known}")
    try:
        return replace(config_of_flags(flags, profile), is_taking_over=True)
    except FlagError as refused:
        raise _refusal(source, f"{prefix}{refused.flag}", refused.problem) from None


def _refusal(source: str, name: str, problem: str) -> InputError:
    return InputError(source, problem, field=name) if source else InputError(name, problem)
