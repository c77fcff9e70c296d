"""The fields that an apply removes, and when it need not search for them."""

from __future__ import annotations

import pytest

from fairlead.apiserver.patch.managedfields.field_set import union
from fairlead.apiserver.patch.managedfields.typed import field_set
from fairlead.apiserver.patch.managedfields.updater import OwnedVersion, _pruned, after_apply
from fairlead.apiserver.schema.model import schemas

DEPLOYMENT = schemas().of_definition("io.k8s.api.apps.v1.Deployment")
OWN = OwnedVersion(DEPLOYMENT)
LIVE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "labels": {"a": "1", "b": "2"}, "finalizers": ["x/y"]},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "1"}},
        "template": {
            "spec": {
                "containers": [
                    {"name": "c", "image": "i", "ports": [{"containerPort": 1, "protocol": "TCP"}]},
                    {"name": "d", "image": "j", "args": ["x"], "resources": {}},
                ],
                "tolerations": [{"key": "a"}],
            }
        },
    },
}
APPLIED = [
    {"spec": {"replicas": 3}},
    {"metadata": {"labels": {"a": "1"}}},
    {"metadata": {"labels": {}, "finalizers": ["x/y"]}},
    {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}},
    {
        "spec": {
            "template": {
                "spec": {
                    "containers": [{"name": "d", "args": ["x"]}],
                    "tolerations": [{"key": "a"}],
                }
            }
        }
    },
]


@pytest.mark.parametrize("applied", APPLIED)
@pytest.mark.parametrize("others", [{}, field_set(DEPLOYMENT, LIVE)])
def test_nothing_is_removed_if_all_earlier_fields_are_applied_again(applied, others):
    own = field_set(DEPLOYMENT, applied)
    assert _pruned(LIVE, own, OWN, [(OWN, union(own, others))]) == LIVE


def test_fields_that_are_no_longer_applied_are_removed():
    before = field_set(DEPLOYMENT, {"metadata": {"labels": {"a": "1", "b": "2"}}})
    new, owners = after_apply(
        OWN,
        LIVE,
        {"metadata": {"labels": {"a": "1"}}},
        {"me": before},
        manager="me",
        force=False,
    )
    assert new["metadata"]["labels"] == {"a": "1"}
    assert owners == {"me": field_set(DEPLOYMENT, {"metadata": {"labels": {"a": "1"}}})}
