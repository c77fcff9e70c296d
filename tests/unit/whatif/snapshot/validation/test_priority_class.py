"""New objects must reference existing priority classes."""

from __future__ import annotations

import pytest

from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.validation.priority_class import refuse_absent_classes


def test_objects_without_a_class_or_with_an_existing_class_are_accepted(make, found):
    inventory = Inventory(found(make.priority_class("x", 1)))
    refuse_absent_classes(
        found(
            make.pod("a"),
            make.pod("b", priorityClassName="x"),
            make.pod("c", priorityClassName="system-cluster-critical"),
            make.workload(name="d", priorityClassName="x"),
            make.node(),
        ),
        inventory,
    )


def test_an_absent_class_is_refused_with_the_nearest_name(make, found):
    inventory = Inventory(found(make.priority_class("urgent", 1)))
    with pytest.raises(InputError) as refused:
        refuse_absent_classes(found(make.pod("a", priorityClassName="urgnet")), inventory)
    assert str(refused.value) == (
        "f.yaml: Pod default/a: spec.priorityClassName: no PriorityClass with name urgnet was "
        "found; did you mean urgent? known: urgent"
    )


@pytest.mark.parametrize(
    ("uid", "hint"),
    [
        ("u", "(the dump has no priorityclasses); read the cluster"),
        ("", "(the cluster has no"),
    ],
    ids=["dump", "hand-written"],
)
def test_pods_with_classes_show_that_the_dump_lacks_all_classes(make, found, uid, hint):
    """Not the cluster: its pods could not have been created without their classes."""
    running = make.pod("a", node_name="n", priorityClassName="urgent", priority=5)
    running["metadata"]["uid"] = uid
    new = found(make.pod("b", priorityClassName="urgent"))
    with pytest.raises(InputError) as refused:
        refuse_absent_classes(new, Inventory(found(running)))
    assert f"no PriorityClass with name urgent was found {hint}" in str(refused.value)
