"""Watches with negative, zero and positive timeouts."""

from __future__ import annotations

import json

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


def test_each_watch_of_a_group_starts_after_its_own_version(api, config_maps):
    """Watches without a selector form a group; a watch may start at a version in the future."""
    version = int(api.config_map("a")["metadata"]["resourceVersion"])
    now, later = (
        api.get(f"{config_maps}?watch=1&resourceVersion={version + more}") for more in (0, 1)
    )
    api.config_map("b")
    api.config_map("c")
    assert [names(now), names(later)] == [["b", "c"], ["c"]]


def test_watches_of_other_groups_get_only_their_events(api, config_maps):
    version = api.config_map("a")["metadata"]["resourceVersion"]
    queries = "", "&labelSelector=app", "&fieldSelector=metadata.name=c", "&timeoutSeconds=9"
    watches = [
        api.get(f"{config_maps}?watch=1&resourceVersion={version}{query}") for query in queries
    ]
    elsewhere = api.get(f"/api/v1/namespaces/other/configmaps?watch=1&resourceVersion={version}")
    everywhere = api.get(f"/api/v1/configmaps?watch=1&resourceVersion={version}")
    tables = [
        api.get(
            f"{config_maps}?watch=1&resourceVersion={version}",
            accept="application/json;as=Table;v=v1;g=meta.k8s.io",
        )
        for _ in range(2)
    ]
    api.config_map("b")
    api.config_map("c")
    assert [names(one) for one in watches] == [["b", "c"], [], ["c"], ["b", "c"]]
    assert [names(elsewhere), names(everywhere)] == [[], ["b", "c"]]
    lines = [list(map(json.loads, one.pop_lines())) for one in tables]
    assert lines[0] == lines[1]
    assert [line["object"]["columnDefinitions"] is None for line in lines[0]] == [False, True]


def names(watch):
    """Return the names of the objects in the queued events of `watch`."""
    return [json.loads(line)["object"]["metadata"]["name"] for line in watch.pop_lines()]
