"""DeviceTaintRules of dumps: their versions, and a note in plans, which ignore them."""

from __future__ import annotations

import json

import pytest

from fairlead.engine.configuration.default_config import default_config
from fairlead.engine.configuration.release import CURRENT, release_of
from fairlead.whatif.configuration.release import ReleaseChoice
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.plan_note import plan_notes
from fairlead.whatif.snapshot.dump_note import IGNORED_RULES
from fairlead.whatif.snapshot.snapshot import parse_snapshot


def dump(version="v1beta2", **selector):
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}
    rule = {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"deviceSelector": selector, "taint": {"key": "k", "effect": "NoExecute"}},
    }
    items = {"apiVersion": "v1", "kind": "List", "items": [node, rule]}
    return parse_snapshot("dump.json", json.dumps(items).encode())


def test_the_alpha_version_is_read_as_the_beta_version():
    """The versions have the same fields since Kubernetes 1.35."""
    _, rule = dump("v1alpha3", pool="a").manifests
    assert rule.value["apiVersion"] == "resource.k8s.io/v1beta2"


@pytest.mark.parametrize("field", ["deviceClassName", "selectors"])
def test_a_selector_of_1_34_is_refused(field):
    """Without it, the rule would taint more devices than it did."""
    with pytest.raises(InputError) as caught:
        dump("v1alpha3", **{field: "x"})
    assert str(caught.value) == (
        f"dump.json: DeviceTaintRule r: spec.deviceSelector.{field}: is not supported;"
        " Kubernetes 1.35 removed it"
    )


@pytest.mark.parametrize(
    ("gates", "expected"), [("", [IGNORED_RULES]), ("DRADeviceTaintRules=true", [])]
)
def test_plans_say_that_rules_have_no_effect(gates, expected):
    snapshot = dump()
    release = release_of("", {"DRADeviceTaintRules": True}) if gates else CURRENT
    model = ClusterModel(snapshot, default_config(release, {}))
    notes = plan_notes(snapshot, model, ReleaseChoice(gates=gates))
    assert [one for one in notes if "DeviceTaintRule" in one and "Behaves" not in one] == expected
