"""PodTopologySpreadArgs and InterPodAffinityArgs: what configuration may say."""

from __future__ import annotations

import pytest

from fairlead.scheduling.compose import ProfileError

GOOD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


def listed(**change):
    """A list with one constraint, changed."""
    return {"defaultingType": "List", "defaultConstraints": [{**GOOD, **change}]}


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"defaultingType": "Other"}, "defaultingType: 'Other' is not one of List, System"),
        ({"defaultConstraints": [GOOD]}, "System goes with empty defaultConstraints only"),
        (listed(maxSkew=0), "defaultConstraints[0].maxSkew: 0 is not greater than 0"),
        (listed(minDomains=0), "defaultConstraints[0].minDomains: 0 is not greater than 0"),
        (listed(topologyKey=""), "defaultConstraints[0].topologyKey: "),
        (listed(topologyKey="a b"), "defaultConstraints[0].topologyKey: "),
        (listed(whenUnsatisfiable="Never"), "defaultConstraints[0].whenUnsatisfiable: 'Never'"),
        (listed(labelSelector={}), "defaultConstraints[0].labelSelector: must not be set"),
        (listed(maxskew=1), "maxskew"),
        ({**listed(), "defaultConstraints": [GOOD, GOOD]}, "defaultConstraints[1]: repeats zone"),
        ({"constraints": []}, "constraints"),
    ],
)
def test_bad_spread_arguments_are_refused_naming_the_field(new_scene, args, problem):
    """One line for whoever wrote the configuration."""
    with pytest.raises(ProfileError, match="pluginConfig PodTopologySpread: ") as refusal:
        new_scene({"PodTopologySpread": args})
    assert problem in str(refusal.value)


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"hardPodAffinityWeight": 101}, "hardPodAffinityWeight: 101 is not in the range [0, 100]"),
        ({"hardPodAffinityWeight": -1}, "hardPodAffinityWeight: -1 is not in the range [0, 100]"),
        ({"hardPodAffinityWeight": "1"}, "hardPodAffinityWeight"),
        ({"weight": 1}, "weight"),
    ],
)
def test_bad_affinity_arguments_are_refused_naming_the_field(new_scene, args, problem):
    """Likewise."""
    with pytest.raises(ProfileError, match="pluginConfig InterPodAffinity: ") as refusal:
        new_scene({"InterPodAffinity": args})
    assert problem in str(refusal.value)


def test_the_listed_constraints_replace_the_systems(new_scene):
    """All fields of a constraint but the selector are allowed."""
    args = listed(minDomains=2, nodeTaintsPolicy="Honor", matchLabelKeys=["version"])
    assert new_scene({"PodTopologySpread": args}).plugin("PodTopologySpread") is not None
