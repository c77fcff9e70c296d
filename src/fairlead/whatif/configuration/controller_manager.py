"""Builds the configuration of the node controllers from kube-controller-manager's flags.

In a run, these controllers continue the work of the cluster's controllers (`is_taking_over`). So
they do not treat the nodes and taints of the snapshot as new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from fairlead.engine.configuration.release import Release
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.flag import FEATURE_GATES, FLAGS, FlagError, config_of_flags
from fairlead.whatif.configuration.release import refusal
from fairlead.whatif.input.duration import for_readers

DEFAULT: Final = NodeLifecycleConfig(is_taking_over=True)


def controller_manager(
    release: Release, flags: Mapping[str, str], *, source: str = "", prefix: str = "--"
) -> NodeLifecycleConfig:
    """Return the configuration that `flags` select in the Kubernetes version `release`.

    The names in `flags` have no leading dashes. The flag `feature-gates` is skipped, because
    `release` already contains the gates. Raises InputError. Its message names `source` if the flags
    come from a file. In the message, `prefix` stands before the name of a flag.
    """
    others = {name: text for name, text in flags.items() if name != FEATURE_GATES}
    try:
        config = config_of_flags(others, release.node_lifecycle)
    except FlagError as refused:
        raise refusal(source, f"{prefix}{refused.flag}", refused.problem) from None
    tainting = release.taint_based_evictions
    return replace(config, taint_based_evictions=tainting, is_taking_over=True)


def flag_notes(config: NodeLifecycleConfig) -> Iterator[str]:
    """Yield a note if flags in `config` do not have their default values; it names these flags."""
    default = config_of_flags({}, config.profile)
    found = [
        f"--{name} {_text(value, is_duration=flag.is_duration)} "
        f"(default: {_text(usual, is_duration=flag.is_duration)})"
        for name, flag in FLAGS.items()
        if (value := flag.value_in(config)) != (usual := flag.value_in(default))
    ]
    if found:
        yield f"The node controllers run with {', '.join(found)}."


def _text(value: Any, *, is_duration: bool) -> str:
    if is_duration:
        return for_readers(value)
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
