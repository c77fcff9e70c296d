"""What-ifs name pods and ReplicaSets that new labels take away from their controllers."""

from __future__ import annotations

import pytest
from tests.unit.whatif.planner.conftest import deployment

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.question import what_if

POD_RELEASED = (
    "ReplicaSet default/web-1 no longer selects Pod default/web-1-0, so in a cluster it releases "
    "the Pod and creates another Pod; this is not simulated."
)
SET_RELEASED = (
    "Deployment default/web no longer selects ReplicaSet default/web-1, so in a cluster it releases"
    " the ReplicaSet and creates another ReplicaSet; this is not simulated."
)


@pytest.mark.parametrize(
    ("edit", "note"),
    [
        ("pod/web-1-0:metadata.labels[app]=debug", POD_RELEASED),
        ("pod/web-1-0:metadata.labels[tier]=debug", None),
        ("rs/web-1:metadata.labels[app]=debug", SET_RELEASED),
    ],
)
def test_a_note_names_an_object_that_its_controller_no_longer_selects(snapshot, make, edit, note):
    objects = deployment(make, "web", ["a"])
    objects[1]["metadata"]["labels"] = objects[2]["metadata"]["labels"]
    found = what_if(snapshot(make.node("a"), *objects), ClusterChange(set=(edit,)))
    notes = [one for one in found.changed.notes if "no longer selects" in one]
    assert notes == ([] if note is None else [note])
