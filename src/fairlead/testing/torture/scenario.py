"""TortureScenario: all inputs of one torture run, as a value and as a YAML file.

In a scenario that is drawn from a seed, `faults` is None, and `FaultPlan` draws the faults during
the run. If the run fails, the printed scenario lists the injected faults. Therefore `Shrinker` can
remove the faults that the failure does not need.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from fairlead.api.json import Json


class FaultKind(StrEnum):
    """The kind of a fault: how the handling of a command differs from the normal handling."""

    REFUSED = "refused"  # the server refuses the command
    LATE = "late"  # the command is performed after a delay
    UNACKNOWLEDGED = "unacknowledged"  # the command is performed, and reported as failed
    SLOW_ANSWER = "slow-answer"  # the command is performed at once, and its outcome arrives late
    TWICE = "twice"  # the command is performed twice, and the second outcome is reported
    TARGET_DELETED = "target-deleted"  # a client deletes the command's target first
    TARGET_CHANGED = "target-changed"  # a client changes the command's target first
    KILLED_BEFORE = "killed-before"  # the process is killed before it performs the command
    KILLED_AFTER = "killed-after"  # the process is killed after it performed the command


class Fault(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A fault of one command."""

    command: str  # the type of the command, such as `Bind`
    target: str  # the kind and key of its object, such as `Pod default/web-1`
    # The number of the command, counted from 1, among the commands of this type for this object.
    nth: int
    kind: FaultKind
    reason: str = ""  # the reason of a refusal
    delay_ms: int = 0  # the delay of a late command or answer


class Create(Struct, frozen=True, tag_field="do", tag="create"):
    """A client creates an object."""

    at_ms: int
    manifest: Json


class Patch(Struct, frozen=True, tag_field="do", tag="patch", omit_defaults=True):
    """A client sends a JSON merge patch; if `is_status` is set, the patch changes the status."""

    at_ms: int
    kind: str
    name: str
    patch: Json
    namespace: str = ""
    is_status: bool = False


class Delete(Struct, frozen=True, tag_field="do", tag="delete", omit_defaults=True):
    """A client deletes an object."""

    at_ms: int
    kind: str
    name: str
    namespace: str = ""
    policy: str = "Background"


class DeletePod(Struct, frozen=True, tag_field="do", tag="delete-pod", omit_defaults=True):
    """A client deletes a pod.

    The pod's index in the list of all pods, sorted by name, is `nth` modulo the number of pods.
    If `evicts` is set, the client sends an eviction, which disruption budgets may refuse.
    """

    at_ms: int
    nth: int
    grace_s: int | None = None
    evicts: bool = False


class DeleteAny(Struct, frozen=True, tag_field="do", tag="delete-any", omit_defaults=True):
    """A client deletes one of the cluster-scoped objects of `kind`.

    If `has_label` is set, only the objects with this label are candidates. The index of the deleted
    object in the list of candidates is `nth` modulo the length of this list.
    """

    at_ms: int
    kind: str
    nth: int
    has_label: str = ""


class Restart(Struct, frozen=True, tag_field="do", tag="restart", omit_defaults=True):
    """The control plane is killed, and starts again `down_ms` later with the stored objects."""

    at_ms: int
    down_ms: int = 0


class ClockJump(Struct, frozen=True, tag_field="do", tag="clock-jump"):
    """The clock jumps forward by `by_ms`; the process does nothing during the skipped time."""

    at_ms: int
    by_ms: int


class WatchCut(Struct, frozen=True, tag_field="do", tag="watch-cut", omit_defaults=True):
    """The watches of `kinds` break for `for_ms`; the missed changes arrive afterwards.

    If `is_compacted` is set, the intermediate versions are lost: a new list shows only the last
    versions.
    """

    at_ms: int
    kinds: tuple[str, ...]
    for_ms: int
    is_compacted: bool = False


Change = Create | Patch | Delete | DeletePod | DeleteAny | Restart | ClockJump | WatchCut


class ControlPlaneOptions(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The options of the configuration under test."""

    batch: str = "fairlead"  # the name of a shipped batch configuration
    autoscaler: str = ""  # `cluster-autoscaler`, `karpenter` or empty
    # A scheduler plugin to add. The plugin `raises` fails in one call of 40. The plugin `waits`
    # makes one pod of 40 wait for a permission that never comes.
    plugin: str = ""
    extender: bool = False  # adds a scheduler extender that answers one call in 25 wrongly
    # Adds admission webhooks that answer one call in 12 wrongly, late or not at all.
    webhooks: bool = False
    start_delay_ms: int = 1000
    ready_delay_ms: int = 0


class TortureScenario(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One run: the objects of a cluster, the changes and faults, and the configuration.

    `objects` exist at the start. Changes and faults happen during the first `chaos_ms`. Afterwards
    the cluster has `calm_ms` to come to rest. If `faults` is None, on average one command in
    `fault_every` gets a fault.
    """

    seed: int
    chaos_ms: int
    calm_ms: int
    options: ControlPlaneOptions = ControlPlaneOptions()
    objects: tuple[Json, ...] = ()
    changes: tuple[Change, ...] = ()
    faults: tuple[Fault, ...] | None = None
    fault_every: int = 11


def to_yaml(scenario: TortureScenario) -> str:
    """Return `scenario` as YAML text."""
    text: str = yaml.safe_dump(msgspec.to_builtins(scenario), sort_keys=False, width=100)
    return text


def from_yaml(text: str) -> TortureScenario:
    """Return the scenario in the YAML `text`.

    Raises ValueError if the text is invalid.
    """
    try:
        raw: Mapping[str, Any] = yaml.safe_load(text)
    except yaml.YAMLError as cause:
        raise ValueError(f"not YAML: {cause}") from None
    return msgspec.convert(raw, TortureScenario)
