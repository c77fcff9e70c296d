"""The zone of a node is that of the deprecated label, if the node has this label."""

from __future__ import annotations

import pytest

from fairlead.api.well_known_label import (
    BETA_REGION,
    BETA_ZONE,
    REGION,
    ZONE,
    region_and_zone,
)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, ("", ""), id="no labels"),
        pytest.param({REGION: "r", ZONE: "a"}, ("r", "a"), id="current labels"),
        pytest.param({BETA_REGION: "q", BETA_ZONE: "b"}, ("q", "b"), id="deprecated labels"),
        pytest.param({ZONE: "a", BETA_ZONE: "b"}, ("", "b"), id="the deprecated label wins"),
        pytest.param({ZONE: "a", BETA_ZONE: ""}, ("", ""), id="the empty deprecated label wins"),
        pytest.param({REGION: "r", BETA_ZONE: "b"}, ("r", "b"), id="mixed"),
    ],
)
def test_the_zone_is_that_of_the_scheduler(labels, expected):
    assert region_and_zone(labels) == expected
