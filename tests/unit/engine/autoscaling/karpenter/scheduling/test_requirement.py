"""Operations on label requirements."""

from __future__ import annotations

import pytest

from fairlead.engine.autoscaling.karpenter.scheduling.requirement import (
    LabelRequirement,
    requirement,
)

Stated = tuple[str, tuple[str, ...]]


def one(operator: str, values: tuple[str, ...] = ()) -> LabelRequirement:
    """Return a requirement on the label `k`."""
    return requirement("k", operator, values)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param(
            ("In", ("a", "b")), ("NotIn", ("b",)), "k In [a]", id="a set loses what is forbidden"
        ),
        pytest.param(
            ("Gt", ("4",)), ("In", ("3", "5", "x")), "k In [5]", id="only integers are within"
        ),
        pytest.param(("In", ("a",)), ("In", ("b",)), "k DoesNotExist", id="sets may be disjoint"),
        pytest.param(("Gt", ("4",)), ("Lt", ("5",)), "k DoesNotExist", id="bounds may cross"),
        pytest.param(("Gte", ("4",)), ("Lte", ("9",)), "k Exists >=4 <=9", id="bounds are kept"),
        pytest.param(
            ("NotIn", ("a",)), ("NotIn", ("b",)), "k NotIn [a b]", id="forbidden values add up"
        ),
        pytest.param(
            ("NotIn", ("7", "x")), ("Gt", ("4",)), "k NotIn [7] >=5", id="outside bounds is dropped"
        ),
    ],
)
def test_requirements_combine_by_intersection(a: Stated, b: Stated, expected: str) -> None:
    """The order of the requirements does not matter."""
    assert str(one(*a).intersection(one(*b))) == expected
    assert str(one(*b).intersection(one(*a))) == expected


def test_beta_labels_are_converted_to_stable_labels() -> None:
    """A pod may still use failure-domain.beta.kubernetes.io/zone."""
    assert requirement("failure-domain.beta.kubernetes.io/zone", "In", ("a",)).key == (
        "topology.kubernetes.io/zone"
    )


def test_an_intersection_has_the_larger_min_values() -> None:
    """Both a NodePool and a pod may require minValues."""
    a = requirement("k", "Exists", (), 2)
    b = requirement("k", "In", ("a", "b", "c"), 3)
    assert a.intersection(b).min_values == 3


def test_texts_show_at_most_five_values() -> None:
    """The text is that of upstream."""
    assert str(one("In", tuple("gfedcba"))) == "k In [a b c d e and 2 others]"
