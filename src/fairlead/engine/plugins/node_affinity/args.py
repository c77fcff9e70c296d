"""NodeAffinityArgs: node affinity that applies to every pod of a profile.

upstream: apis/config/types_pluginargs.go, validation/validation_pluginargs.go
"""

from __future__ import annotations

import msgspec

from fairlead.api.node_selector import preferred_terms_error, required_selector_error
from fairlead.api.objects import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)


# Like the objects of a pod's spec, but strict: a misspelt field must not be ignored.
class _Requirement(NodeSelectorRequirement, frozen=True, forbid_unknown_fields=True):
    """A requirement on a node."""


class _Term(NodeSelectorTerm, frozen=True, forbid_unknown_fields=True):
    """Requirements that must all hold."""

    match_expressions: tuple[_Requirement, ...] = ()
    match_fields: tuple[_Requirement, ...] = ()


class _Selector(NodeSelector, frozen=True, forbid_unknown_fields=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[_Term, ...] = ()


class _Preferred(PreferredSchedulingTerm, frozen=True, forbid_unknown_fields=True):
    """A weighted preference."""

    weight: int
    preference: _Term


class AddedAffinity(NodeAffinity, frozen=True, forbid_unknown_fields=True):
    """addedAffinity."""

    required_during_scheduling_ignored_during_execution: _Selector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[_Preferred, ...] = ()


class NodeAffinityArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Nodes must match `added_affinity` in addition to the pod's own affinity."""

    added_affinity: AddedAffinity | None = None

    def __post_init__(self) -> None:
        """Raises ValueError naming the field."""
        required, preferred = self.required, self.preferred
        problem = None if required is None else required_selector_error(required)
        if problem is not None:
            field = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            raise ValueError(f"{field}.{problem}")
        problem = preferred_terms_error(preferred)
        if problem is not None:
            field = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
            raise ValueError(f"{field}{problem}")

    @property
    def required(self) -> NodeSelector | None:
        """The selector that every node must match."""
        added = self.added_affinity
        return None if added is None else added.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[PreferredSchedulingTerm, ...]:
        """The preferred terms for Score."""
        added = self.added_affinity
        return () if added is None else added.preferred_during_scheduling_ignored_during_execution
