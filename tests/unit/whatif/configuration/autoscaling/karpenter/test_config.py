"""The configuration of Karpenter: notes about spot, and defaults of the API server."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.core.instant import seconds
from fairlead.whatif.configuration.autoscaling.karpenter.config import karpenter_config

KIND = "node.kubernetes.io/instance-type"
SPOT_AND_ON_DEMAND = {"operator": "In", "values": ["spot", "on-demand"]}
ON_DEMAND = {"operator": "In", "values": ["on-demand"]}
WITHOUT_SPOT = "name,cpu,memory,price\nsmall,4,16Gi,0.2\n"
WITH_SPOT = "name,cpu,memory,price,spotPrice\nsmall,4,16Gi,0.2,0.1\n"
SPOT_NODE = {
    "karpenter.sh/nodepool": "default",
    "karpenter.sh/capacity-type": "spot",
    KIND: "small",
    "topology.kubernetes.io/zone": "z",
}
STATED_ON_DEMAND = "name,cpu,memory,price,capacityType\nsmall,4,16Gi,0.2,on-demand\n"
OTHER_SPOT = "name,cpu,memory,price,spotPrice\nsmall,4,16Gi,0.2,\nmedium,8,32Gi,0.4,0.2\n"


@pytest.fixture
def spot_notes(found, make, write):
    """Return the notes about spot for one NodePool and the instance types of a CSV file."""

    def read(capacity_type=None, types=WITHOUT_SPOT, policy="WhenEmptyOrUnderutilized"):
        key = "karpenter.sh/capacity-type"
        requirements = [] if capacity_type is None else [{"key": key, **capacity_type}]
        pool = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {
                "template": {"spec": {"requirements": requirements}},
                "disruption": {"consolidationPolicy": policy},
            },
        }
        cluster = found(make.node("n"), pool)
        _, notes = karpenter_config("dump", cluster, str(write("types.csv", types)))
        return [one for one in notes if "spot offering" in one]

    return read


@pytest.mark.parametrize("capacity_type", [None, SPOT_AND_ON_DEMAND])
def test_a_pool_that_allows_both_needs_a_type_with_spot(spot_notes, capacity_type):
    [note] = spot_notes(capacity_type)
    assert note.startswith("NodePool default allows spot and on-demand, but no instance type")
    assert "Require karpenter.sh/capacity-type on-demand in the NodePool" in note


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"capacity_type": ON_DEMAND}, id="the pool allows on-demand only"),
        pytest.param({"types": WITH_SPOT}, id="a type has a spot price"),
        pytest.param({"policy": "WhenEmpty"}, id="no node is replaced"),
    ],
)
def test_replacements_that_can_be_launched_need_no_note(spot_notes, given):
    assert spot_notes(**given) == []


@pytest.mark.parametrize(
    ("spec", "status", "words"),
    [
        pytest.param({}, "True", [], id="Ready"),
        pytest.param({}, None, [], id="no condition"),
        pytest.param({}, "False", ["Ready condition of NodePool p is not True"], id="not Ready"),
    ],
)
def test_pools_without_new_nodes_are_named(found, make, write, spec, status, words):
    conditions = [] if status is None else [{"type": "Ready", "status": status}]
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "p"},
        "spec": {"template": {"spec": {"requirements": []}}, **spec},
        "status": {"conditions": conditions},
    }
    types = str(write("types.csv", WITH_SPOT))
    _, notes = karpenter_config("dump", found(make.node("n"), pool), types)
    named = [one for one in notes if "Ready condition" in one]
    assert [one in note for one, note in zip(words, named, strict=True)] == [True] * len(words)


@pytest.mark.parametrize(
    ("types", "labels", "who"),
    [
        (WITH_SPOT, {"node.kubernetes.io/instance-type": "large"}, "n (large on-demand)"),
        (OTHER_SPOT, {"karpenter.sh/capacity-type": "spot"}, "n (small spot)"),
        (WITHOUT_SPOT, {"karpenter.sh/capacity-type": "spot"}, None),
        (WITH_SPOT, {"karpenter.sh/capacity-type": "spot"}, None),
        (WITHOUT_SPOT, {}, None),
    ],
    ids=["no such type", "no spot price", "no spot price of any type", "spot", "on demand"],
)
def test_nodes_that_no_instance_type_matches_are_named(found, make, write, types, labels, who):
    """Karpenter replaces them as drifted."""
    own = {
        "karpenter.sh/nodepool": "default",
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "small",
        "topology.kubernetes.io/zone": "z",
        **labels,
    }
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"requirements": []}}},
    }
    file = str(write("types.csv", types))
    _, notes = karpenter_config("dump", found(make.node("n", **own), pool), file)
    named = [one for one in notes if "InstanceTypeNotFound" in one]
    assert len(named) == (who is not None)
    assert all(f"capacity type of {who}. " in one for one in named)


@pytest.mark.parametrize(("given", "expected"), [({}, "720h"), ({"expireAfter": "Never"}, "Never")])
def test_nodes_expire_after_the_servers_default(found, make, write, given, expected):
    """A NodePool from a file has not been through an API server."""
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"requirements": [], **given}}},
    }
    types = str(write("types.csv", WITH_SPOT))
    config, _ = karpenter_config("dump", found(make.node("n"), pool), types)
    [read] = config.pools
    assert read.spec.template.spec.expire_after == expected


def deployment(env, args=(), image="public.ecr.aws/karpenter/controller:1.13.0"):
    variables = [{"name": name, "value": value} for name, value in env.items()]
    variables.append({"name": "SYSTEM_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "x"}}})
    container = {"name": "controller", "image": image, "env": variables, "args": list(args)}
    labels = {"app.kubernetes.io/name": "karpenter"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "karpenter", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


@pytest.fixture
def settings(found, make, write):
    """Return (the options of Karpenter, the notes about them) for a cluster with one NodePool."""

    def read(*objects):
        pool = {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": "default"},
            "spec": {"template": {"spec": {"requirements": []}}},
        }
        cluster = found(make.node("n"), pool, *objects)
        config, notes = karpenter_config("dump", cluster, str(write("types.csv", WITH_SPOT)))
        return config.options, [one for one in notes if "karpenter" in one]

    return read


def test_settings_are_those_of_the_installed_karpenter(settings):
    gates = "ReservedCapacity=false, SpotToSpotConsolidation=true,NodeRepair=true,Other=yes"
    env = {"FEATURE_GATES": gates, "BATCH_MAX_DURATION": "30s", "PREFERENCE_POLICY": "Ignore"}
    args = ["--min-values-policy=BestEffort", "--batch-max-duration", "1m"]
    options, notes = settings(deployment(env, args))
    assert options == KarpenterOptions(
        reserved_capacity=False,
        spot_to_spot_consolidation=True,
        preference_policy="Ignore",
        min_values_policy="BestEffort",
        batch_max_s=60.0,
        node_overlay=True,
    )
    assert options.nomination == seconds(120)
    about_settings, about_gates = notes
    assert about_settings == (
        "Karpenter's settings are those of Deployment kube-system/karpenter: "
        "ReservedCapacity=false, SpotToSpotConsolidation=true, PREFERENCE_POLICY=Ignore, "
        "MIN_VALUES_POLICY=BestEffort, BATCH_MAX_DURATION=60s."
    )
    assert about_gates == (
        "kube-system/karpenter has the feature gate NodeRepair, which is not simulated."
    )


@pytest.mark.parametrize(
    "objects",
    [
        (),
        (deployment({"BATCH_IDLE_DURATION": "1s", "PREFERENCE_POLICY": "Respect"}),),
        (deployment({"BATCH_IDLE_DURATION": "soon", "PREFERENCE_POLICY": "Perhaps"}),),
        (deployment({"PREFERENCE_POLICY": "Ignore"}, image="example.com/other"),),
    ],
)
def test_default_settings_need_no_note(settings, objects):
    options, notes = settings(*objects)
    # These gates are off upstream, but a change may need them.
    options = replace(options, static_capacity=False, node_overlay=False)
    assert (options, notes) == (KarpenterOptions(), [])


OVERLAY = {
    "apiVersion": "karpenter.sh/v1alpha1",
    "kind": "NodeOverlay",
    "metadata": {"name": "o"},
    "spec": {"requirements": [], "price": "1"},
}


def test_overlays_of_the_cluster_need_their_feature_gate(settings):
    assert settings(OVERLAY)[0].node_overlay
    off = deployment({"FEATURE_GATES": "NodeOverlay=false"})
    options, [note] = settings(OVERLAY, off)
    assert not options.node_overlay
    assert note.endswith("Deployment kube-system/karpenter: NodeOverlay=false.")
    options, notes = settings(off)
    assert (options.node_overlay, notes) == (False, [])


def test_overlays_in_a_file_have_an_effect(found, make, write):
    pool = {"metadata": {"name": "default"}, "spec": {"template": {"spec": {}}}}
    objects = [{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **pool}, OVERLAY]
    cluster = found(make.node("n"), deployment({"FEATURE_GATES": "NodeOverlay=false"}))
    listing = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    types, file = write("types.csv", WITH_SPOT), write("pools.json", listing)
    config, _ = karpenter_config("dump", cluster, str(types), str(file))
    assert config.options.node_overlay


def test_types_of_nodes_are_the_same_for_each_order_of_the_nodes_in_the_dump(found, make):
    """Nodes of one type can have different amounts; the first of them by name is the model."""
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"requirements": []}}},
    }
    labels = {"node.kubernetes.io/instance-type": "m"}
    nodes = [make.node("b", cpu="3500m", **labels), make.node("a", cpu="4", **labels)]
    for order in (nodes, nodes[::-1]):
        config, _ = karpenter_config("dump", found(pool, *order))
        [offered] = config.types
        assert offered.capacity["cpu"] == 4000


def test_the_type_and_zone_of_a_claim_without_a_node_are_offered(found, make):
    """The machine of the NodeClaim is starting; its type and zone are those of no existing node."""
    zone, kind = "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"requirements": []}}},
    }
    size = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    launched = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": "c",
            "labels": {
                "karpenter.sh/nodepool": "default",
                "karpenter.sh/capacity-type": "on-demand",
                kind: "large",
                zone: "z-b",
            },
        },
        "spec": {"requirements": []},
        "status": {"providerID": "x:///c", "capacity": size, "allocatable": size},
    }
    node = make.node("n", cpu="4", **{kind: "small", zone: "z-a"})
    config, notes = karpenter_config("dump", found(pool, node, launched))
    offers = {
        one.name: [offer.requirements.get(zone).single for offer in one.offerings]
        for one in config.types
    }
    assert offers == {"small": ["z-a", "z-b"], "large": ["z-a", "z-b"]}
    assert not any("No offering" in note for note in notes)


def starting_claim(kind, name="default-x", status=None, **labels):
    """A NodeClaim of the instance type `kind` whose node does not exist yet."""
    size = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    own = {"karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "on-demand"}
    own["node.kubernetes.io/instance-type"] = kind
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name, "labels": {**own, **labels}},
        "spec": {"requirements": []},
        "status": {"providerID": f"x:///{name}", "capacity": size, "allocatable": size}
        if status is None
        else status,
    }


POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {"template": {"spec": {"requirements": []}}},
}


def test_an_existing_node_is_the_model_of_its_type_before_a_claim(found, make):
    """The amounts of the claim are estimates, although its name precedes that of the node."""
    generation = "karpenter.k8s.aws/instance-generation"
    node = make.node("ip-10-0-0-1", cpu="15900m", **{KIND: "m", generation: "6"})
    claim = starting_claim("m", **{generation: "0"})
    config, _ = karpenter_config("dump", found(POOL, claim, node))
    [offered] = config.types
    assert offered.capacity["cpu"] == 15900
    assert offered.requirements.get(generation).single == "6"


def test_a_claim_that_is_not_launched_adds_no_type(found, make):
    """Labels of the NodePool's template can name an instance type before there is a machine."""
    claim = starting_claim("large", status={})
    config, notes = karpenter_config("dump", found(POOL, make.node("n", **{KIND: "small"}), claim))
    assert [one.name for one in config.types] == ["small"]
    assert not any("No offering" in note for note in notes)


def test_a_price_file_alone_prices_the_type_of_a_claim_without_a_node(found, make, write):
    header = "EndTimestamp,InstanceID,Region,AssetClass,InstanceIDField,InstanceType,"
    rows = ",,,node,,small,0.1,\n,,,node,,large,0.5,\n"
    file = str(write("prices.csv", f"{header}MarketPriceHourly,Version\n{rows}"))
    cluster = found(POOL, make.node("n", **{KIND: "small"}), starting_claim("large"))
    config, notes = karpenter_config("dump", cluster, file)
    prices = {one.name: [offer.price for offer in one.offerings] for one in config.types}
    assert prices == {"large": [0.5], "small": [0.1]}
    assert not any("No offering" in note for note in notes)


@pytest.mark.parametrize(
    ("given", "values", "offered"),
    [
        ((WITHOUT_SPOT, {}), ["spot"], {"on-demand", "spot"}),
        ((WITHOUT_SPOT, {}), ["spot", "on-demand"], {"on-demand"}),
        ((WITHOUT_SPOT, SPOT_NODE), ["spot", "on-demand"], {"on-demand", "spot"}),
        ((OTHER_SPOT, SPOT_NODE), ["spot"], {"on-demand"}),
        ((STATED_ON_DEMAND, SPOT_NODE), ["spot"], {"on-demand"}),
    ],
    ids=[
        "a pool of spot nodes",
        "spot is unused",
        "a spot node",
        "another type is spot",
        "on demand is stated",
    ],
)
def test_types_are_also_spot_if_the_file_states_no_spot_but_the_cluster_uses_it(
    found, make, write, given, values, offered
):
    types, labels = given
    key = "karpenter.sh/capacity-type"
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "template": {
                "spec": {"requirements": [{"key": key, "operator": "In", "values": values}]}
            }
        },
    }
    file = str(write("types.csv", types))
    config, notes = karpenter_config("dump", found(make.node("n", **labels), pool), file)
    [small] = [one for one in config.types if one.name == "small"]
    assert {one.capacity_type for one in small.offerings} == offered
    assumed = "--instance-types states no spot price of small. It is assumed to be 40%"
    assert any(one.startswith(assumed) for one in notes) == ("spot" in offered)
    used = "A NodePool uses spot, but --instance-types offers no type as spot."
    assert any(one.startswith(used) for one in notes) == ("spot" in offered)
