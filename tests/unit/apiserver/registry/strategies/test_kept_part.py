"""Fields that an update cannot change, because the server owns them."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.registry.preparation import with_null_lists
from fairlead.apiserver.registry.strategies.table import strategy_of

CLAIM = {"kind": "PersistentVolumeClaim", "name": "x"}
FAR = {**CLAIM, "namespace": "n"}


def updated(api_version, kind, old, new):
    """Return the stored fields after an update of `old` to `new`."""
    meta = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    strategy, stored = strategy_of(kind_of(meta)), {**meta, **new}
    if strategy.prepare_for_update:
        stored = strategy.prepare_for_update({**meta, **old}, stored, None)
    stored = with_null_lists(strategy.null_when_empty, stored)
    return {key: stored[key] for key in new}


@pytest.mark.parametrize(
    ("api_version", "kind", "old", "new", "kept"),
    [
        ("v1", "Namespace", {"spec": {"finalizers": ["kubernetes"]}}, {"spec": {}},
         {"spec": {"finalizers": ["kubernetes"]}}),
        ("v1", "ServiceAccount", {}, {"secrets": [{"name": "a", "namespace": "b"}]},
         {"secrets": [{"name": "a"}]}),
        ("coordination.k8s.io/v1", "Lease", {"spec": {"strategy": "S"}},
         {"spec": {"strategy": "T", "preferredHolder": "p", "holderIdentity": "h"}},
         {"spec": {"strategy": "T", "holderIdentity": "h"}}),
        ("v1", "LimitRange", {}, {"spec": {"limits": []}}, {"spec": {"limits": None}}),
        ("resource.k8s.io/v1", "ResourceClaimTemplate", {},
         {"spec": {"spec": {"devices": {"requests": []}}}},
         {"spec": {"spec": {"devices": {"requests": None}}}}),
    ],
)  # fmt: skip
def test_fields_of_the_server_are_kept_by_an_update(api_version, kind, old, new, kept):
    assert updated(api_version, kind, old, new) == kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({"dataSource": CLAIM}, {"dataSource": CLAIM, "dataSourceRef": CLAIM}),
        ({"dataSourceRef": CLAIM}, {"dataSource": CLAIM, "dataSourceRef": CLAIM}),
        ({"dataSource": {"kind": "Other", "name": "x"}}, {}),
        ({"dataSourceRef": FAR}, {}),
    ],
    ids=["from dataSource", "from dataSourceRef", "an unsupported kind", "in another namespace"],
)
def test_the_data_source_and_data_source_ref_of_a_claim_are_synchronized(said, kept):
    """The missing field is copied from the other one. Cross-namespace sources are dropped."""
    spec = updated("v1", "PersistentVolumeClaim", {"spec": {}}, {"spec": {**said, "a": 1}})["spec"]
    assert spec == {**kept, "a": 1}


def test_a_stored_cross_namespace_data_source_is_kept():
    """The claim was created by a server with the feature gate enabled."""
    old = {"spec": {"dataSourceRef": FAR}}
    assert updated("v1", "PersistentVolumeClaim", old, old) == old
