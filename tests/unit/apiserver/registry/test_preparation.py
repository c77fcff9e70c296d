"""Updates that increment the generation."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.registry.preparation import prepared_for_update
from fairlead.apiserver.registry.strategies.table import strategy_of


@pytest.mark.parametrize(
    ("api_version", "kind", "counted"),
    [("scheduling.k8s.io/v1", "PriorityClass", 1), ("policy/v1", "PodDisruptionBudget", 2)],
)
def test_only_some_kinds_increment_the_generation(api_version, kind, counted):
    meta = {"name": "x", "resourceVersion": "1", "generation": 1}
    old = {"apiVersion": api_version, "kind": kind, "metadata": meta}
    kind = kind_of(old)
    made = prepared_for_update(kind, strategy_of(kind), old, {**old, "spec": {"a": 1}})
    assert made["metadata"]["generation"] == counted


def test_a_csi_driver_has_a_generation_only_after_a_change():
    """A new CSIDriver has no generation."""
    meta = {"name": "x", "resourceVersion": "1"}
    old = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": meta, "spec": {}}
    kind = kind_of(old)
    assert "generation" not in prepared_for_update(kind, strategy_of(kind), old, old)["metadata"]
    new = {**old, "spec": {"requiresRepublish": True}}
    assert prepared_for_update(kind, strategy_of(kind), old, new)["metadata"]["generation"] == 1
