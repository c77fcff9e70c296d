"""Experiments of other versions on dumps of today's clusters."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.profile import V1_16
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import DEFAULT_CONDITIONS
from fairlead.whatif.question import what_if

ZONE = "topology.kubernetes.io/zone"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"


@pytest.fixture
def fail_zone_a(make, snapshot):
    """Fail zone a of a cluster with the zones a and b, as Kubernetes 1.16."""

    def run(label):
        nodes = [make.node(f"{zone}{n}", **{label: zone}) for zone in "ab" for n in range(3)]
        conditions = replace(DEFAULT_CONDITIONS, node_lifecycle=NodeLifecycleConfig(profile=V1_16))
        change = ClusterChange(failures=Failures(fail_zone=("a",)), lasts="10m")
        return what_if(snapshot(*nodes), change, conditions).changed

    return run


def test_1_16_sees_the_zones_of_nodes_with_todays_labels(fail_zone_a):
    outcome = fail_zone_a(ZONE)
    [note] = outcome.notes
    assert note == (
        f"Kubernetes 1.16 knows zones and regions by {BETA_ZONE} and {BETA_REGION}; derived from "
        "today's labels for 6 nodes."
    )
    assert {change.zone for change in outcome.outage.zones} == {
        change.zone for change in fail_zone_a(BETA_ZONE).outage.zones
    }


def test_no_labels_are_derived_for_nodes_with_the_old_labels(fail_zone_a):
    assert fail_zone_a(BETA_ZONE).notes == ()
