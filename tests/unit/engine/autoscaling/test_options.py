"""Flags of the cluster autoscaler: upstream's names and defaults, and invalid values."""

from __future__ import annotations

import pytest

from fairlead.engine.autoscaling.cluster_autoscaler.options import (
    GIB,
    AutoscalingOptions,
    Limits,
    NodeGroupOptions,
    OptionError,
    parse_options,
)
from fairlead.engine.core.instant import seconds


def test_the_defaults_are_those_of_upstream():
    assert parse_options({}) == AutoscalingOptions()


@pytest.mark.parametrize(
    ("flag", "value", "field", "parsed"),
    [
        ("expander", "priority,least-waste", "expander", ("priority", "least-waste")),
        ("scan-interval", "20s", "scan_interval", seconds(20)),
        ("cores-total", "4:64", "cores_total", Limits(4, 64)),
        ("memory-total", "1:2", "memory_total", Limits(GIB, 2 * GIB)),
        ("gpu-total", ["k80:0:3"], "gpu_total", {"k80": Limits(0, 3)}),
        ("scale-down-enabled", "false", "scale_down_enabled", False),
        ("balance-similar-node-groups", True, "balance_similar_node_groups", True),
        ("max-nodes-total", "7", "max_nodes_total", 7),
        ("ok-total-unready-count", 1, "ok_total_unready_count", 1),
        ("drain-priority-config", "1000:40,0:20", "drain_priority_config", ((0, 20), (1000, 40))),
    ],
)
def test_a_flag_sets_its_field(flag, value, field, parsed):
    assert getattr(parse_options({flag: value}), field) == parsed


def test_flags_of_groups_set_the_defaults_of_groups():
    options = parse_options({"scale-down-unneeded-time": "2m"})
    assert options.defaults == NodeGroupOptions(scale_down_unneeded_time=seconds(120))
    own = options.defaults.overridden({"zero-or-max-node-scaling": True})
    assert (own.zero_or_max_node_scaling, own.scale_down_unneeded_time) == (True, seconds(120))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"expander": "grpc"}, "expander: grpc calls an external server"),
        ({"expander": "cheapest"}, "expander: no expander 'cheapest'; known: "),
        ({"expander": "price,price"}, "expander: price,price names an expander twice"),
        (
            {"scan-interval": "soon"},
            "--scan-interval: 'soon' is not a valid value; expected a duration of more than 0s",
        ),
        ({"scan-interval": "0s"}, "--scan-interval: '0s' is not a valid value"),
        ({"scan-interval": "-5s"}, "--scan-interval: '-5s' is not a valid value"),
        ({"cores-total": "9:1"}, "--cores-total: '9:1' is not a valid value; expected MINIMUM:MAX"),
        ({"scale-down-enabled": "maybe"}, "'maybe' is not a valid value; expected true or false"),
        ({"scale-down-utilization-threshold": "nan"}, "threshold: 'nan' is not a valid value"),
        ({"scale-down-utilization-threshold": 1e999}, "threshold: inf is not a valid value"),
        ({"max-nodes-total": 1.5}, "--max-nodes-total: 1.5 is not a valid value"),
        ({"max-nodes-total": True}, "--max-nodes-total: True is not a valid value"),
        ({"max-nodes-total": "9" * 30}, "--max-nodes-total: '9"),
        ({"colour": "red"}, "no flag --colour$"),
        ({"max-node-total": 3}, r"no flag --max-node-total; did you mean --max-nodes-total\?"),
    ],
)
def test_an_invalid_flag_is_named_in_the_error(flags, says):
    with pytest.raises(OptionError, match=says):
        parse_options(flags)
