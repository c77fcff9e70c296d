"""PodTopologySpreadArgs and InterPodAffinityArgs: valid and invalid configuration."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.compose import ProfileError

GOOD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


def listed(**change):
    """A list with one constraint, changed."""
    return {"defaultingType": "List", "defaultConstraints": [{**GOOD, **change}]}


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (
            {"defaultingType": "Other"},
            'defaultingType: Unsupported value: "Other": supported values: "System", "List"',
        ),
        ({"defaultConstraints": [GOOD]}, "when .defaultConstraints are not empty"),
        (listed(maxSkew=0), "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range"),
        (listed(minDomains=0), "defaultConstraints[0].minDomains: Invalid value: 0: not in valid"),
        (
            listed(topologyKey=""),
            "defaultConstraints[0].topologyKey: Required value: can not be empty",
        ),
        (
            listed(whenUnsatisfiable=""),
            "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
        ),
        (listed(topologyKey="a b"), "defaultConstraints[0].topologyKey: "),
        (
            listed(whenUnsatisfiable="Never"),
            'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Never"',
        ),
        (
            listed(labelSelector={}),
            "defaultConstraints[0].labelSelector: Forbidden: constraint must",
        ),
        (listed(maxskew=1), "maxskew"),
        (
            {**listed(), "defaultConstraints": [GOOD, GOOD]},
            'defaultConstraints[1]: Duplicate value: "{zone, ',
        ),
        ({"constraints": []}, "constraints"),
    ],
)
def test_bad_spread_arguments_are_refused_naming_the_field(new_scene, args, problem):
    """One line that names the field."""
    with pytest.raises(ProfileError, match="pluginConfig PodTopologySpread: ") as refusal:
        new_scene({"PodTopologySpread": args})
    assert problem in str(refusal.value)


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (
            {"hardPodAffinityWeight": 101},
            "hardPodAffinityWeight: Invalid value: 101: not in valid range",
        ),
        (
            {"hardPodAffinityWeight": -1},
            "hardPodAffinityWeight: Invalid value: -1: not in valid range",
        ),
        ({"hardPodAffinityWeight": "1"}, "hardPodAffinityWeight"),
        ({"weight": 1}, "weight"),
    ],
)
def test_bad_affinity_arguments_are_refused_naming_the_field(new_scene, args, problem):
    """One line that names the field."""
    with pytest.raises(ProfileError, match="pluginConfig InterPodAffinity: ") as refusal:
        new_scene({"InterPodAffinity": args})
    assert problem in str(refusal.value)


def test_listed_constraints_replace_the_system_defaults(new_scene):
    """All fields of a constraint but the selector are allowed."""
    args = listed(minDomains=2, nodeTaintsPolicy="Honor", matchLabelKeys=["version"])
    assert new_scene({"PodTopologySpread": args}).plugin("PodTopologySpread") is not None
