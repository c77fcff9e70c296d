"""Classes that a dump lacks: inferred from its pods, never invented for new objects."""

from __future__ import annotations

import pytest

from fairlead.whatif.inventory import Inventory
from fairlead.whatif.priority_classes import refuse_absent_classes, with_inferred_classes


@pytest.fixture
def classes(found):
    """The classes there are after inference: name -> (value, policy)."""

    def infer(*values):
        return {
            each.ref.name: (each.value["value"], each.value.get("preemptionPolicy"))
            for each in with_inferred_classes(found(*values))
            if each.kind.kind == "PriorityClass"
        }

    return infer


def test_a_class_is_what_its_pods_say(make, classes):
    pods = [
        make.pod("a", priorityClassName="x", priority=7),
        make.pod("b", priorityClassName="x", priority=7),
        make.pod("c", priorityClassName="x", priority=9),
        make.pod("d", priorityClassName="y", priority=3, preemptionPolicy="Never"),
    ]
    assert classes(*pods) == {"x": (7, "PreemptLowerPriority"), "y": (3, "Never")}


def test_given_and_built_in_classes_are_left_alone(make, classes):
    pods = [
        make.pod("a", priorityClassName="x", priority=7),
        make.pod("b", priorityClassName="system-node-critical", priority=2000001000),
    ]
    assert classes(make.priority_class("x", 8), *pods) == {"x": (8, None)}


def test_a_priority_without_a_class_gets_one(make, found):
    whole = with_inferred_classes(found(make.pod("a", priority=7), make.pod("b", priority=0)))
    assert [each.title for each in whole] == [
        "Pod default/a",
        "Pod default/b",
        "PriorityClass priority-7",
    ]
    assert whole[0].value["spec"]["priorityClassName"] == "priority-7"
    assert "priorityClassName" not in whole[1].value["spec"]


def test_a_priority_that_differs_from_the_default_class_gets_one(make, classes):
    default = make.priority_class("default", 5, globalDefault=True)
    pods = [make.pod("a", priority=5), make.pod("b", priority=0), make.pod("c", priority=-3)]
    assert set(classes(default, *pods)) == {"default", "priority-0", "priority-minus-3"}


def test_what_has_no_class_or_a_known_one_passes(make, found):
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
