"""Node labels that have a beta and a stable key."""

from __future__ import annotations

import pytest

from fairlead.api.objects import Node, ObjectMeta
from fairlead.engine.nodelifecycle.node_edit import stale_labels
from fairlead.engine.nodelifecycle.profile import V1_16, V1_36

OS, BETA_OS = "kubernetes.io/os", "beta.kubernetes.io/os"


@pytest.mark.parametrize(
    ("labels", "profile", "stale"),
    [
        pytest.param({}, V1_36, {}, id="none"),
        pytest.param({OS: "linux"}, V1_36, {BETA_OS: "linux"}, id="missing"),
        pytest.param({OS: "linux", BETA_OS: "linux"}, V1_36, {}, id="equal"),
        pytest.param({OS: "linux", BETA_OS: "w"}, V1_36, {BETA_OS: "linux"}, id="different"),
        pytest.param({BETA_OS: "linux"}, V1_36, {}, id="never the other way"),
        pytest.param({BETA_OS: "linux"}, V1_16, {OS: "linux"}, id="the way of 1.16"),
    ],
)
def test_the_label_of_the_other_key_is_updated(labels, profile, stale):
    node = Node(metadata=ObjectMeta(labels=labels))
    assert stale_labels(node, profile.label_copies) == stale
