"""DynamicResources: the devices that the claims of a pod get on each node, and failures."""

from __future__ import annotations

import pytest

from fairlead.engine.core.status import Code, Status
from fairlead.engine.framework.cycle_state import CycleState
from fairlead.testing.device_builders import (
    DRIVER,
    make_claim_status,
    make_device,
    make_device_class,
    make_device_request,
    make_first_available,
    make_pod_resource_claims,
    make_resource_claim,
    make_slice,
)

NOT_ENOUGH = "cannot allocate all claims"
NOWHERE = {"a": NOT_ENOUGH, "b": NOT_ENOUGH}
GPU_0 = f"{DRIVER}/a/gpu-0"


@pytest.fixture
def plugin(scene):
    """Two nodes, and a class that selects every device."""
    scene.node("a", "z1")
    scene.node("b", "z2")
    scene.tell(make_device_class())
    return scene.plugin("DynamicResources")


def devices_by_node(scene, plugin, *claims):
    """{node: devices by claim and request, or the reason} for a pod that names `claims`."""
    scene.tell(*claims)
    pod = scene.incoming(**make_pod_resource_claims(*(claim.metadata.name for claim in claims)))
    state = scene.started(plugin, pod)
    found = scene.verdicts(plugin, pod, state)
    for node in scene.table.nodes():
        if found[node.name]:
            continue
        plugin.reserve(state, pod, node.name)
        commands = plugin.pre_bind(state, pod, node.name).commands
        plugin.unreserve(state, pod, node.name)
        found[node.name] = [
            summary(c.fields["allocation"]) for c in commands if hasattr(c, "fields")
        ]
    return found


def summary(allocation):
    results = allocation["devices"]["results"]
    return " ".join(f"{one['request']}={one['device']}" for one in results)


# --- requests --------------------------------------------------------------------------------


def test_a_claim_gets_a_device_on_a_node_with_devices(scene, plugin):
    """The other node has none."""
    scene.tell(make_slice("a"))
    found = devices_by_node(scene, plugin, make_resource_claim("c"))
    assert found == {"a": ["r=gpu-0"], "b": NOT_ENOUGH}


def test_a_count_is_allocated_from_one_node(scene, plugin):
    """The first free devices, in their order, are allocated."""
    scene.tell(make_slice("a", ["gpu-0"]), make_slice("b", ["gpu-0", "gpu-1", "gpu-2"]))
    found = devices_by_node(scene, plugin, make_resource_claim("c", make_device_request(count=2)))
    assert found == {"a": NOT_ENOUGH, "b": ["r=gpu-0 r=gpu-1"]}


def test_devices_in_use_are_skipped(scene, plugin):
    """These devices are allocated to another claim."""
    scene.tell(make_slice("a", ["gpu-0", "gpu-1"]), make_slice("b"))
    scene.tell(make_resource_claim("x", status=make_claim_status("a", "gpu-0")))
    scene.tell(make_resource_claim("y", status=make_claim_status("b", "gpu-0")))
    found = devices_by_node(scene, plugin, make_resource_claim("c"))
    assert found == {"a": ["r=gpu-1"], "b": NOT_ENOUGH}


def test_claims_of_one_pod_do_not_share_devices(scene, plugin):
    """They are allocated together or not at all."""
    scene.tell(make_slice("a"), make_slice("b", ["gpu-0", "gpu-1"]))
    claims = make_resource_claim("c"), make_resource_claim("d")
    found = devices_by_node(scene, plugin, *claims)
    assert found == {"a": NOT_ENOUGH, "b": ["r=gpu-0", "r=gpu-1"]}


def test_requests_are_tried_in_every_combination(scene, plugin):
    """The first request must leave the only big device to the second."""
    scene.tell(make_slice("a", [make_device("big", "80Gi"), make_device("small", "20Gi")]))
    memory = f'device.capacity["{DRIVER}"].memory'
    claim = make_resource_claim(
        "c",
        make_device_request("any"),
        make_device_request("big", f'{memory}.compareTo(quantity("40Gi")) >= 0'),
    )
    assert devices_by_node(scene, plugin, claim)["a"] == ["any=small big=big"]


def test_all_devices_of_a_node(scene, plugin):
    """All devices are allocated; if one is in use, the claim cannot be allocated."""
    scene.tell(make_slice("a", ["gpu-0", "gpu-1"]), make_slice("b", ["gpu-0", "gpu-1"]))
    scene.tell(make_resource_claim("x", status=make_claim_status("b", "gpu-1")))
    claim = make_resource_claim("c", make_device_request(allocationMode="All"))
    found = devices_by_node(scene, plugin, claim)
    assert found == {"a": ["r=gpu-0 r=gpu-1"], "b": NOT_ENOUGH}


def test_allocation_mode_all_needs_at_least_one_device(scene, plugin):
    """At least one device is needed."""
    claim = make_resource_claim("c", make_device_request(allocationMode="All"))
    assert devices_by_node(scene, plugin, claim) == NOWHERE


def test_all_devices_of_an_incomplete_pool_are_an_error(scene, plugin):
    """The number of devices is unknown, which is an error as in upstream."""
    scene.tell(make_slice("a", count=2))
    claim = make_resource_claim("c", make_device_request(allocationMode="All"))
    assert devices_by_node(scene, plugin, claim)["a"] == (
        "claim default/c, request r: asks for all devices, but resource pool "
        f"{DRIVER}/a is currently being updated"
    )


def test_the_first_available_alternative_is_allocated(scene, plugin):
    """Which one that is can differ from node to node."""
    scene.tell(make_slice("a", ["x", "y"]), make_slice("b", ["x"]))
    claim = make_resource_claim(
        "c",
        make_first_available("r", make_device_request("two", count=2), make_device_request("one")),
    )
    found = devices_by_node(scene, plugin, claim)
    assert found == {"a": ["r/two=x r/two=y"], "b": ["r/one=x"]}


def test_earlier_alternatives_score_higher(scene, plugin):
    """The first alternative scores eight, each further one scores one less."""
    scene.tell(make_slice("a", ["x", "y"]), make_slice("b", ["x"]))
    scene.tell(
        make_resource_claim(
            "c",
            make_first_available(
                "r", make_device_request("two", count=2), make_device_request("one")
            ),
        )
    )
    pod = scene.incoming(**make_pod_resource_claims("c"))
    state = scene.started(plugin, pod)
    for node in scene.table.nodes():
        plugin.filter(state, pod, node)
    assert [plugin.score(state, pod, node) for node in scene.table.nodes()] == [8, 7]


def test_a_claim_may_not_exceed_the_maximum_number_of_devices(scene, plugin):
    """The API's limit."""
    claim = make_resource_claim("c", make_device_request(count=33))
    assert devices_by_node(scene, plugin, claim)["a"] == (
        "claim default/c: number of requested devices 33 exceeds the claim limit of 32"
    )


def test_admin_access_allocates_devices_in_use(scene, plugin):
    """Other claims may still get these devices afterwards."""
    scene.tell(make_slice("a"))
    scene.tell(make_resource_claim("x", status=make_claim_status("a", "gpu-0")))
    claim = make_resource_claim("c", make_device_request(adminAccess=True))
    assert devices_by_node(scene, plugin, claim) == {"a": ["r=gpu-0"], "b": NOT_ENOUGH}


def test_a_count_above_the_number_of_equal_devices_fails_quickly(scene, plugin):
    """The search does not try every order of thirty devices."""
    scene.tell(make_slice("a", [f"gpu-{i}" for i in range(30)]))
    claim = make_resource_claim(
        "c", make_device_request("r", count=16), make_device_request("s", count=15)
    )
    assert devices_by_node(scene, plugin, claim) == NOWHERE


# --- constraints and taints ------------------------------------------------------------------


@pytest.mark.parametrize("attribute", [f"{DRIVER}/numa", "example.com/numa"])
def test_match_attribute_selects_devices_with_equal_values(scene, plugin, attribute):
    """The first pair with equal values is allocated; names without a domain are the driver's."""
    name = attribute if attribute.startswith("example.com") else "numa"
    devices = [make_device(f"gpu-{i}", **{name: numa}) for i, numa in enumerate((0, 1, 1))]
    scene.tell(make_slice("a", [*devices]))
    same = {"matchAttribute": attribute, "requests": []}
    claim = make_resource_claim(
        "c", make_device_request("x"), make_device_request("y"), constraints=[same]
    )
    assert devices_by_node(scene, plugin, claim)["a"] == ["x=gpu-1 y=gpu-2"]


def test_a_constraint_applies_only_to_its_requests(scene, plugin):
    """The third request may have another value."""
    devices = [make_device(f"gpu-{i}", numa=numa) for i, numa in enumerate((0, 1, 1))]
    scene.tell(make_slice("a", devices))
    same = {"matchAttribute": f"{DRIVER}/numa", "requests": ["x", "y"]}
    claim = make_resource_claim(
        "c",
        make_device_request("x"),
        make_device_request("y"),
        make_device_request("z"),
        constraints=[same],
    )
    assert devices_by_node(scene, plugin, claim)["a"] == ["x=gpu-1 y=gpu-2 z=gpu-0"]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("matchAttribute", "z=gpu-1 x=gpu-0 y=gpu-2"),
        ("distinctAttribute", "z=gpu-0 x=gpu-1 y=gpu-2"),
    ],
)
def test_the_search_tries_other_devices_for_unconstrained_requests(
    scene, plugin, constraint, expected
):
    """The search tries another device for z if x and y cannot be satisfied beside it."""
    devices = [make_device(f"gpu-{i}", numa=numa) for i, numa in enumerate((1, 0, 1))]
    scene.tell(make_slice("a", devices))
    rule = {constraint: f"{DRIVER}/numa", "requests": ["x", "y"]}
    claim = make_resource_claim(
        "c",
        make_device_request("z"),
        make_device_request("x"),
        make_device_request("y"),
        constraints=[rule],
    )
    assert devices_by_node(scene, plugin, claim)["a"] == [expected]


def test_a_distinct_value_is_searched_for_with_every_device_of_another_request(scene, plugin):
    devices = [make_device(f"gpu-{i}", numa=numa) for i, numa in enumerate((1, 0, 0))]
    scene.tell(make_slice("a", devices))
    rule = {"distinctAttribute": f"{DRIVER}/numa", "requests": ["x", "y"]}
    claim = make_resource_claim(
        "c",
        make_device_request("z"),
        make_device_request("x"),
        make_device_request("y"),
        constraints=[rule],
    )
    assert devices_by_node(scene, plugin, claim)["a"] == ["z=gpu-1 x=gpu-0 y=gpu-2"]


def test_a_device_rejected_by_one_constraint_does_not_affect_others(scene, plugin):
    """gpu-0 has no socket, so its NUMA node does not matter to gpu-1."""
    devices = [make_device("gpu-0", numa=0), make_device("gpu-1", numa=1, socket=0)]
    scene.tell(make_slice("a", devices))
    rules = [{"matchAttribute": f"{DRIVER}/{name}"} for name in ("numa", "socket")]
    claim = make_resource_claim("c", constraints=rules)
    assert devices_by_node(scene, plugin, claim)["a"] == ["r=gpu-1"]


def test_all_devices_must_satisfy_the_constraints(scene, plugin):
    """Otherwise it is an error, which names the device."""
    devices = [make_device(f"gpu-{i}", numa=i) for i in range(2)]
    scene.tell(make_slice("a", devices))
    rule = {"matchAttribute": f"{DRIVER}/numa"}
    claim = make_resource_claim("c", make_device_request(allocationMode="All"), constraints=[rule])
    assert devices_by_node(scene, plugin, claim)["a"] == (
        f"claim default/c, request r: cannot add device {DRIVER}/a/gpu-1"
        " because a claim constraint would not be satisfied"
    )


def test_a_device_without_the_attribute_never_matches(scene, plugin):
    """It does not even match another device without the attribute."""
    scene.tell(make_slice("a"))
    same = {"matchAttribute": f"{DRIVER}/numa"}
    claim = make_resource_claim("c", constraints=[same])
    assert devices_by_node(scene, plugin, claim) == NOWHERE


TAINT = {"key": "broken", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("taint", "toleration", "fits"),
    [
        (TAINT, None, False),
        (TAINT, {"operator": "Exists"}, True),
        (TAINT, {"key": "broken", "operator": "Exists"}, True),
        (TAINT, {"key": "broken", "operator": "Equal", "value": "yes"}, True),
        (TAINT, {"key": "broken", "operator": "Equal", "value": "no"}, False),
        (TAINT, {"key": "broken", "operator": "Like", "value": "yes"}, False),
        (TAINT, {"key": "other", "operator": "Exists"}, False),
        (TAINT, {"operator": "Exists", "effect": "NoExecute"}, False),
        (TAINT | {"effect": "NoExecute"}, None, False),
        (TAINT | {"effect": "None"}, None, True),
    ],
)
def test_tainted_devices(scene, plugin, taint, toleration, fits):
    """They repel requests that do not tolerate the taint."""
    scene.tell(make_slice("a", [make_device("gpu-0") | {"taints": [taint]}]))
    more = {"tolerations": [toleration]} if toleration else {}
    found = devices_by_node(scene, plugin, make_resource_claim("c", make_device_request(**more)))
    assert found["a"] == (["r=gpu-0"] if fits else NOT_ENOUGH)


# --- pools -----------------------------------------------------------------------------------


def test_an_incomplete_pool_provides_no_devices(scene, plugin):
    """The pool provides devices when its last slice exists."""
    scene.tell(make_slice("a", ["x"], name="first", count=2))
    claim = make_resource_claim("c")
    assert devices_by_node(scene, plugin, claim) == NOWHERE
    scene.tell(make_slice("a", ["y"], name="second", count=2))
    assert devices_by_node(scene, plugin, claim)["a"] == ["r=x"]


def test_the_newest_generation_counts(scene, plugin):
    """Older slices of a pool are out of date."""
    scene.tell(make_slice("a", ["x"], name="old"))
    scene.tell(make_slice("a", ["y"], name="new", generation=2))
    assert devices_by_node(scene, plugin, make_resource_claim("c"))["a"] == ["r=y"]


def test_two_devices_of_one_name_make_a_pool_invalid(scene, plugin):
    """The pool provides no devices."""
    scene.tell(make_slice("a", ["x", "x"]))
    found = devices_by_node(scene, plugin, make_resource_claim("c"))
    assert found["a"] == "invalid resource pools were encountered"


ZONE_2 = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z2"]}
            ]
        }
    ]
}


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ({"allNodes": True}, "ab"),
        ({"nodeSelector": ZONE_2}, "b"),
        ({}, ""),
        (
            {
                "perDeviceNodeSelection": True,
                "devices": [make_device("x") | {"nodeName": "a"}],
            },
            "a",
        ),
        (
            {
                "perDeviceNodeSelection": True,
                "devices": [
                    make_device("x") | {"nodeSelector": ZONE_2},
                    make_device("y") | {"nodeName": "z"},
                ],
            },
            "b",
        ),
    ],
)
def test_slices_for_several_nodes(scene, plugin, spec, nodes):
    """All fields of a slice that select nodes are used."""
    scene.tell(make_slice("", ["x"], spec=spec))
    found = devices_by_node(scene, plugin, make_resource_claim("c"))
    assert found == {node: ["r=x"] if node in nodes else NOT_ENOUGH for node in "ab"}


def test_the_devices_of_a_deleted_slice_are_removed(scene, plugin):
    """The devices of a changed slice are replaced."""
    slice_of_a = make_slice("a")
    scene.tell(slice_of_a)
    claim = make_resource_claim("c")
    assert devices_by_node(scene, plugin, claim)["a"] == ["r=gpu-0"]
    scene.tell(make_slice("a", ["other"]))
    assert devices_by_node(scene, plugin, claim)["a"] == ["r=other"]
    scene.untell(slice_of_a)
    assert devices_by_node(scene, plugin, claim) == NOWHERE


# --- partitions of a device ------------------------------------------------------------------

MEMORY = {"sharedCounters": [{"name": "card", "counters": {"memory": {"value": "40Gi"}}}]}


def partition(name, memory, counter_set="card"):
    """Return a device that consumes this much of the card's memory."""
    counters = {"memory": {"value": memory}}
    return make_device(name) | {
        "consumesCounters": [{"counterSet": counter_set, "counters": counters}]
    }


def partitioned():
    """Return a card of 40Gi, as a whole device and as two halves."""
    devices = [partition("half-0", "20Gi"), partition("half-1", "20Gi"), partition("whole", "40Gi")]
    return make_slice("a", devices, spec=MEMORY)


def test_partitions_share_the_counters_of_their_pool(scene, plugin):
    """When both halves are allocated, the whole card is not available."""
    scene.tell(partitioned())
    both = make_resource_claim("c", make_device_request(count=2))
    assert devices_by_node(scene, plugin, both)["a"] == ["r=half-0 r=half-1"]
    three = make_resource_claim("d", make_device_request(count=3))
    assert devices_by_node(scene, plugin, three)["a"] == NOT_ENOUGH


def test_allocated_partitions_leave_less_to_others(scene, plugin):
    """With one half in use only the other fits; with the whole card in use none does."""
    scene.tell(partitioned(), make_resource_claim("used", status=make_claim_status("a", "half-0")))
    assert devices_by_node(scene, plugin, make_resource_claim("c"))["a"] == ["r=half-1"]
    scene.tell(make_resource_claim("used", status=make_claim_status("a", "whole")))
    assert devices_by_node(scene, plugin, make_resource_claim("c"))["a"] == NOT_ENOUGH


def test_the_search_backtracks_if_a_partition_uses_too_many_counters(scene, plugin):
    """The whole card is tried first, because of its name; then no second device is possible."""
    devices = [partition("a-whole", "40Gi"), partition("b-half", "20Gi"), partition("c", "20Gi")]
    scene.tell(make_slice("a", devices, spec=MEMORY))
    found = devices_by_node(scene, plugin, make_resource_claim("c", make_device_request(count=2)))
    assert found["a"] == ["r=b-half r=c"]


INVALID = "invalid resource pools were encountered"


@pytest.mark.parametrize(
    "slices",
    [
        [make_slice("a", ["x", partition("y", "1Gi", "other")], spec=MEMORY)],
        [
            make_slice(
                "a",
                ["x", make_device("y") | {"consumesCounters": [
                    {"counterSet": "card", "counters": {"cores": {"value": "1"}}}]}],
                spec=MEMORY,
            )
        ],
        [
            make_slice("a", ["x"], name="1", count=3),
            make_slice("a", [], name="2", count=3, spec=MEMORY),
            make_slice("a", [], name="3", count=3, spec=MEMORY),
        ],
    ],
    ids=["no such counter set", "no such counter", "two counter sets of one name"],
)  # fmt: skip
def test_no_device_is_allocated_from_a_pool_with_invalid_counters(scene, plugin, slices):
    """This includes devices that consume no counters."""
    scene.tell(*slices)
    found = devices_by_node(scene, plugin, make_resource_claim("c"))
    assert found == {"a": INVALID, "b": NOT_ENOUGH}


def test_a_device_name_may_occur_on_two_nodes_of_a_pool(scene, plugin):
    """Each node's own devices must have distinct names."""
    scene.tell(
        *(
            make_slice(node, ["x"], name=node, pool="p", count=3, spec={"nodeName": node})
            for node in "ab"
        ),
        make_slice("b", ["x"], name="c", pool="p", count=3, spec={"nodeName": "b"}),
    )
    found = devices_by_node(scene, plugin, make_resource_claim("c"))
    assert found == {"a": ["r=x"], "b": INVALID}


def test_counter_sets_without_their_devices_keep_all_nodes_from_asking_for_all(scene, plugin):
    """The pool is incomplete, and the missing slice might have devices for any node."""
    everywhere = {"sharedCounters": MEMORY["sharedCounters"], "nodeSelector": ZONE_2}
    scene.tell(make_slice("", [], pool="p", count=2, spec=everywhere), make_slice("a", ["x"]))
    found = devices_by_node(
        scene, plugin, make_resource_claim("c", make_device_request(allocationMode="All"))
    )
    assert f"resource pool {DRIVER}/p is currently being updated" in found["a"]


def test_pools_with_binding_conditions_are_tried_last(scene, plugin):
    """Within a pool, only the order of the slices matters."""
    slow = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
    scene.tell(
        make_slice("a", [make_device("slow") | slow], pool="p1"),
        make_slice("a", ["fast"], pool="p2"),
        make_slice("b", ["fast"], name="s2", pool="p3", count=2),
        make_slice("b", [make_device("slow") | slow], name="s1", pool="p3", count=2),
    )
    found = devices_by_node(scene, plugin, make_resource_claim("c"))
    assert found == {"a": ["r=fast"], "b": ["r=slow"]}


# --- distinct attributes ---------------------------------------------------------------------


def on_socket(name, socket=None):
    """A device with the attribute `socket`."""
    attributes = {} if socket is None else {f"{DRIVER}/socket": {"int": socket}}
    return make_device(name) | {"attributes": attributes}


@pytest.mark.parametrize(("count", "devices"), [(1, ["r=x"]), (2, ["r=x r=z"]), (3, NOT_ENOUGH)])
def test_devices_with_distinct_attributes(scene, plugin, count, devices):
    """x and y are on one socket; a device without the attribute never fits."""
    one_of_each = [on_socket("x", 0), on_socket("y", 0), on_socket("z", 1), on_socket("w")]
    scene.tell(make_slice("a", one_of_each))
    constraints = [{"distinctAttribute": f"{DRIVER}/socket"}]
    claim = make_resource_claim("c", make_device_request(count=count), constraints=constraints)
    assert devices_by_node(scene, plugin, claim)["a"] == devices


def test_a_distinct_attribute_may_concern_some_requests_only(scene, plugin):
    """The request s is free to take the same socket."""
    scene.tell(make_slice("a", [on_socket("x", 0), on_socket("y", 0), on_socket("z", 0)]))
    constraints = [{"requests": ["r"], "distinctAttribute": f"{DRIVER}/socket"}]
    claim = make_resource_claim(
        "c", make_device_request("r"), make_device_request("s"), constraints=constraints
    )
    assert devices_by_node(scene, plugin, claim)["a"] == ["r=x s=y"]


# --- the claim as a whole --------------------------------------------------------------------


def refusal(scene, plugin, *claims):
    answer = plugin.pre_filter(CycleState(), scene.incoming(**make_pod_resource_claims(*claims)))
    assert isinstance(answer, Status)
    return answer


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ([], 'could not find ResourceClaim "default/c"'),
        ([make_resource_claim("c", terminating=True)], 'resourceclaim "c" is being deleted'),
        (
            [make_resource_claim("c", make_device_request(of_class="none"))],
            "request r: device class none does not exist",
        ),
        (
            [
                make_resource_claim(
                    "c", make_first_available("r", make_device_request("s", of_class="none"))
                )
            ],
            "request r/s: device class none does not exist",
        ),
        (
            [make_resource_claim("c", {"name": "r"})],
            "resource claim default/c, request r: unknown request type",
        ),
        (
            [
                make_resource_claim(
                    "c",
                    status=make_claim_status("a", "x", reserved_for=[f"u{i}" for i in range(256)]),
                )
            ],
            "resourceclaim in use",
        ),
    ],
)
def test_claims_that_cannot_be_used(scene, plugin, claims, words):
    """The messages are upstream's; preemption does not help."""
    scene.tell(*claims)
    answer = refusal(scene, plugin, "c")
    assert answer.message == words
    assert answer.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_results_are_cached_until_they_may_differ(scene, plugin):
    """Claims with equal requests share them; changes of devices, labels and classes drop them."""
    scene.tell(make_slice("a"), make_slice("", ["x"], spec={"nodeSelector": ZONE_2}))
    small = make_resource_claim("c", make_device_request(of_class="small"))
    memory = f'device.capacity["{DRIVER}"].memory'
    scene.tell(make_device_class("small", f'{memory}.isLessThan(quantity("80Gi"))'))
    assert devices_by_node(scene, plugin, small) == {"a": ["r=gpu-0"], "b": ["r=x"]}
    scene.tell(make_resource_claim("taken", status=make_claim_status("a", "gpu-0")))
    assert devices_by_node(scene, plugin, small) == {"a": NOT_ENOUGH, "b": ["r=x"]}
    scene.node("a", "z2")
    assert devices_by_node(scene, plugin, small) == {"a": ["r=x"], "b": ["r=x"]}
    scene.tell(make_resource_claim("taken"))
    scene.node("b", "z1")
    assert devices_by_node(scene, plugin, small) == {"a": ["r=gpu-0"], "b": NOT_ENOUGH}
    scene.tell(make_device_class("small", f'{memory}.isLessThan(quantity("1Gi"))'))
    assert devices_by_node(scene, plugin, small) == NOWHERE


def test_a_pod_with_an_allocated_claim_fits_only_its_node(scene, plugin):
    """Other pods may use it as well."""
    scene.tell(make_resource_claim("c", status=make_claim_status("a", "gpu-0", reserved_for=["x"])))
    pod = scene.incoming(**make_pod_resource_claims("c"))
    state = scene.started(plugin, pod)
    found = scene.verdicts(plugin, pod, state)
    assert found == {"a": "", "b": "resourceclaim not available on the node"}
