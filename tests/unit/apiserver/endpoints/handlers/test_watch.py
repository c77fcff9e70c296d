"""Watches with negative, zero and positive timeouts."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("seconds", [-1, -3_600, 9_223_372_037])
def test_a_watch_with_a_negative_timeout_ends_without_events(api, config_maps, seconds):
    """A timeout whose nanoseconds overflow 64 bits is negative, too."""
    api.config_map("a")
    opened = api.get(f"{config_maps}?watch=1&timeoutSeconds={seconds}")
    assert opened.is_over
    assert opened.pop_lines() == []


@pytest.mark.parametrize(("seconds", "lasts_s"), [(0, 3_600), (5, 5)])
def test_other_watches_have_the_requested_timeout(api, config_maps, seconds, lasts_s):
    opened = api.get(f"{config_maps}?watch=1&timeoutSeconds={seconds}")
    assert (opened.is_over, opened.timeout_s) == (False, lasts_s)
