"""InterPodAffinityArgs (apis/config/types_pluginargs.go)."""

from __future__ import annotations

import msgspec

from fairlead.api.text.field_problem import invalid


class InterPodAffinityArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`hard_pod_affinity_weight` (0..100) is what a required term of a placed pod scores."""

    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError naming the field."""
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            problem = invalid(weight, "not in valid range [0, 100]")
            raise ValueError(f"hardPodAffinityWeight: {problem}")
