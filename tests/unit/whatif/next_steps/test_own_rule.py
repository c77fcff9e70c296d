"""Configurations that keep pods off nodes which the default configuration admits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.extender.extender import Extender
from fairlead.whatif.next_steps.own_rule import has_own_rules

SPREAD = {"maxSkew": 1, "topologyKey": "zone"}


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        ("NodeAffinity", {}, False),
        ("NodeAffinity", {"addedAffinity": {}}, False),
        (
            "NodeAffinity",
            {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}
                }
            },
            True,
        ),
        (
            "PodTopologySpread",
            {"defaultConstraints": [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}]},
            False,
        ),
        (
            "PodTopologySpread",
            {"defaultConstraints": [{**SPREAD, "whenUnsatisfiable": "DoNotSchedule"}]},
            True,
        ),
        ("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated"}}, False),
    ],
)
def test_only_some_arguments_keep_pods_off_nodes(plugin, args, expected):
    config = SchedulerConfig((Profile(), Profile("other", args={plugin: args})))
    assert has_own_rules(config) is expected


def test_extenders_and_plugins_of_users_may_keep_pods_off_nodes():
    assert has_own_rules(SchedulerConfig(extenders=(Extender(url_prefix="http://127.0.0.1:1"),)))
    assert has_own_rules(replace(SchedulerConfig(), out_of_tree={"Mine": lambda *_: None}))
