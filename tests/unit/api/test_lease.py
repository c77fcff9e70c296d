"""Renewal times of Leases."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.api.lease import RENEWED_EVERY, Renewals, renewals_of


def lease(renew_time="2026-01-01T00:00:03.500000Z", **annotations):
    return decode(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "n1", "namespace": "kube-node-lease", "annotations": annotations},
            "spec": {"renewTime": renew_time},
        }
    )


@pytest.mark.parametrize(
    ("now", "last"), [(0, 7), (7, 7), (16, 7), (17, 17), (26, 17), (1_000, 997)]
)
def test_regular_renewals_are_a_function_of_time(now, last):
    assert Renewals(7, 10).last(now) == last


def test_a_lease_without_renewals_does_not_change():
    assert Renewals(7).last(1_000) == 7


def test_an_annotation_of_a_lease_has_its_renewal_interval():
    found = renewals_of(lease(**{RENEWED_EVERY: "10s"}))
    assert found is not None
    assert found.every == 10_000_000_000
    assert found.first % 10_000_000_000 == 3_500_000_000
    assert renewals_of(lease()) == Renewals(found.first)


def test_a_lease_without_a_renew_time_has_no_renewals():
    assert renewals_of(lease(renew_time="")) is None


@pytest.mark.parametrize(
    "odd", [{"renew_time": "yesterday"}, {RENEWED_EVERY: "often"}], ids=["time", "interval"]
)
def test_unreadable_renewals_are_refused(odd):
    with pytest.raises(ValueError, match=r"yesterday|often"):
        renewals_of(lease(**odd))
