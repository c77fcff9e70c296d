"""The annotation with the resource usage of a pod or of the daemons of a node."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.api.pods.usage import USAGE, parse_usage, usage_of, usage_problem
from fairlead.testing.builders import make_pod


def pod_that_uses(text):
    return decode_as(Pod, {"metadata": {"name": "a", "annotations": {USAGE: text}}})


def test_cpu_is_read_in_milli_and_other_resources_in_whole_units():
    text = "cpu=250m, memory=1Ki,ephemeral-storage=1500m,pids=40"
    expected = {"cpu": 250, "memory": 1024, "ephemeral-storage": 2, "pids": 40}
    assert usage_of(pod_that_uses(text)) == expected
    assert usage_problem(pod_that_uses(text)) == ""


def test_the_usage_without_the_annotation_is_empty():
    assert usage_of(make_pod("a")) == {}
    assert usage_problem(make_pod("a")) == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("gpu=1", "'gpu=1' is not of the form cpu|memory|ephemeral-storage|pids=amount"),
        ("", "'' is not of the form cpu|memory|ephemeral-storage|pids=amount"),
        ("cpu=1, memory=-1", "'memory=-1' is negative"),
    ],
)
def test_an_invalid_annotation_is_ignored_and_reported(text, problem):
    assert usage_of(pod_that_uses(text)) == {}
    assert usage_problem(pod_that_uses(text)) == f"metadata.annotations[{USAGE}]: {problem}"
    with pytest.raises(ValueError, match="is"):
        parse_usage(text)
