"""Configuration files of kube-batch and Volcano are read unchanged, and mistakes are refused."""

from __future__ import annotations

import pytest

from fairlead.engine.batch.compose import compose
from fairlead.engine.batch.configuration_file import (
    SHIPPED,
    BatchConfigurationError,
    read_configuration,
    shipped_configuration,
)
from fairlead.engine.batch.defect import FIXED, UPSTREAM, Defect
from fairlead.engine.batch.rules import FAIRLEAD_RULES, KUBE_BATCH_RULES
from fairlead.engine.state.cluster import Cluster

SHIPPED_EXAMPLE = """\
actions: "reclaim, allocate, backfill, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
    arguments:
      predicate.MemoryPressureEnable: true
  - name: proportion
  - name: nodeorder
    arguments:
      leastrequested.weight: 2
"""


def test_the_example_of_kube_batch_is_read_unchanged():
    config = read_configuration(SHIPPED_EXAMPLE)
    assert config.actions == ("reclaim", "allocate", "backfill", "preempt")
    assert [[option.name for option in tier] for tier in config.tiers] == [
        ["priority", "gang", "conformance"],
        ["drf", "predicates", "proportion", "nodeorder"],
    ]
    gang, nodeorder = config.tiers[0][1], config.tiers[1][3]
    assert not gang.allows("enablePreemptable")
    assert gang.allows("enableJobOrder")
    assert nodeorder.arguments == {"leastrequested.weight": "2"}
    assert config.tiers[1][1].arguments == {"predicate.MemoryPressureEnable": "true"}
    assert config.rules is KUBE_BATCH_RULES
    assert (config.starvation_bound_s, config.broken_gang_grace_s) == (None, None)


@pytest.mark.parametrize(
    ("text", "may_exceed"),
    [
        ("actions: allocate", True),
        ("{actions: allocate, overshoot: false}", False),
        ("actions: 'enqueue, allocate'", False),
        ("{actions: 'enqueue, allocate', overshoot: true}", True),
        ("{actions: allocate, tiers: [{plugins: [{name: gang}, {name: binpack}]}]}", False),
        ("{actions: allocate, defects: upstream}", True),
    ],
)
def test_queues_may_exceed_their_share_except_in_volcano(text, may_exceed):
    assert read_configuration(text).defects.has(Defect.OVERSHOOT) is may_exceed


def test_volcanos_plugin_switches_and_action_configurations_are_read():
    config = read_configuration(
        'actions: "enqueue, allocate"\n'
        "metrics: {type: prometheus, address: http://prometheus:9090}\n"
        "configurations: [{name: allocate, arguments: {enablePredicateErrorCache: true}}]\n"
        "tiers: [{plugins: [{name: gang, enableJobStarving: false, enabledOverused: false}]}]"
    )
    assert not config.tiers[0][0].allows("enabledOverused")
    assert config.actions == ("enqueue", "allocate")


def test_an_empty_file_is_the_built_in_default():
    assert (
        read_configuration("")
        == read_configuration("# nothing")
        == shipped_configuration("kube-batch")
    )
    assert read_configuration("").actions == ("allocate", "backfill")


def test_the_configuration_of_fairlead_uses_all_actions_and_its_own_rules():
    config = shipped_configuration("fairlead")
    assert config.actions == ("allocate", "reclaim", "backfill", "preempt")
    assert config.rules is FAIRLEAD_RULES
    assert (config.starvation_bound_s, config.broken_gang_grace_s) == (600.0, 60.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: [", "not YAML: "),
        pytest.param("[" * 100_000, "not YAML: line 1: is nested more than", id="deep nesting"),
        ("actions: a\nactions: b", "not YAML: line 2: "),
        ("a: 1\n---\na: 1", "contains 2 documents; expected one"),
        ("[]", "configuration: expected a mapping, found []"),
        ("actions: 3", "actions: expected a string of names separated by commas, found 3"),
        ("action: allocate", "configuration: no field 'action'; known: actions, "),
        ("rules: mine", "rules: 'mine' is not a known value; known: fairlead, kube-batch"),
        ("defaultQueue: ''", "defaultQueue: expected the name of a queue, found ''"),
        ("defaultQueue: [a]", "defaultQueue: expected the name of a queue, found ['a']"),
        ("schedulerNames: volcano", "schedulerNames: expected a list of names, found 'volcano'"),
        ("schedulerNames: []", "schedulerNames: expected a list of names, found []"),
        ("schedulerNames: [1]", "schedulerNames: expected a list of names, found [1]"),
        (
            "tiers: [{plugins: [{name: binpack, arguments: {binpack.cpu: 2147483648}}]}]",
            "tiers[0].plugins[0].arguments.binpack.cpu: 2147483648 does not fit 32 bits",
        ),
        (
            "tiers: [{plugins: [{name: binpack, arguments: {binpack.weight: [3]}}]}]",
            "tiers[0].plugins[0].arguments.binpack.weight: expected a text, a number or a boolean,",
        ),
        ("victims: all", "victims: 'all' is not a known value; known: gangs, pods"),
        ("tiers: x", "tiers: expected a list, found 'x'"),
        ("tiers: [{plugin: []}]", "tiers[0]: no field 'plugin'; known: plugins"),
        ("tiers: [{plugins: [gang]}]", "tiers[0].plugins[0]: expected a mapping, found 'gang'"),
        ("tiers: [{plugins: [{}]}]", "tiers[0].plugins[0].name: expected the name of a plugin"),
        (
            "tiers: [{plugins: [{name: gang, enableJobOrder: 1}]}]",
            "tiers[0].plugins[0].enableJobOrder: expected true or false, found 1",
        ),
        (
            "tiers: [{plugins: [{name: gang, enabled: true}]}]",
            "tiers[0].plugins[0]: no field 'enabled'; known: arguments, ",
        ),
        (
            "tiers: [{plugins: [{name: gang, arguments: []}]}]",
            "tiers[0].plugins[0].arguments: expected a mapping, found []",
        ),
        ("starvationBound: soon", "starvationBound: expected a duration such as 10m, found 'soon'"),
        ("brokenGangGrace: -1m", "brokenGangGrace: expected a duration such as 10m, found '-1m'"),
        ("brokenGangGrace: 5", "brokenGangGrace: expected a duration such as 10m, found 5"),
    ],
)
def test_an_invalid_configuration_is_refused_in_one_line(text, complaint):
    with pytest.raises(BatchConfigurationError) as refused:
        read_configuration(text)
    assert str(refused.value).startswith(complaint)
    assert "\n" not in str(refused.value)


def test_an_unknown_shipped_configuration_is_refused():
    with pytest.raises(
        BatchConfigurationError, match="no configuration 'x'; known: fairlead, kube-b"
    ):
        shipped_configuration("x")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            'actions: "allocate, enqeue"',
            "actions: no action 'enqeue'; known: allocate, backfill, enqueue, preempt, reclaim",
        ),
        (
            "tiers: [{plugins: [{name: gang}]}, {plugins: [{name: fair}]}]",
            "tiers[1].plugins: no plugin 'fair'; known: binpack, conformance, drf, gang, ",
        ),
    ],
)
def test_unknown_actions_and_plugins_are_refused(text, complaint):
    with pytest.raises(BatchConfigurationError) as refused:
        compose(read_configuration(text), Cluster())
    assert str(refused.value).startswith(complaint)


def test_defects_of_upstream_are_present_only_if_configured():
    assert shipped_configuration("kube-batch").defects is FIXED
    assert shipped_configuration("kube-batch-upstream").defects is UPSTREAM
    assert read_configuration("defects: upstream").defects is UPSTREAM
    with pytest.raises(
        BatchConfigurationError, match="defects: 'all' is not a known value; known: fixed"
    ):
        read_configuration("defects: all")


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_configuration_can_be_composed(name):
    assert compose(shipped_configuration(name), Cluster()).actions
