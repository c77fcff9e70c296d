"""Shapes: pods that do not differ for the scheduler share one shape."""

from __future__ import annotations

from weakref import ref

import pytest
from msgspec.structs import replace

from fairlead.api.codec import as_json, decode_as
from fairlead.api.objects import Pod, ResourceRequirements
from fairlead.api.quantity import QuantityError
from fairlead.engine.state.shape import is_same_shape
from fairlead.testing.builders import make_pod
from fairlead.testing.random_cluster import Chance


def claiming(name):
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


SAME = {
    "another name": make_pod("b", requests={"cpu": "1"}),
    "another namespace": make_pod("a", namespace="x", requests={"cpu": "1"}),
    "labels": make_pod("a", labels={"app": "x"}, requests={"cpu": "1"}),
    "a priority": make_pod("a", priority=9, requests={"cpu": "1"}),
    "a node": make_pod("a", node="n1", requests={"cpu": "1"}),
    "a nomination": make_pod("a", nominated="n1", requests={"cpu": "1"}),
    "a deletion": make_pod("a", terminating=True, requests={"cpu": "1"}),
    "a plain status": make_pod(
        "a", requests={"cpu": "1"}, status={"containerStatuses": [{"name": "main"}]}
    ),
    "gates": make_pod("a", requests={"cpu": "1"}, spec={"schedulingGates": [{"name": "g"}]}),
    "a token under a random name": make_pod(
        "a",
        requests={"cpu": "1"},
        spec={"volumes": [{"name": "kube-api-access-x", "projected": {}}]},
    ),
}
OTHER = {
    "another amount": make_pod("a", requests={"cpu": "2"}),
    "the same amount in other words": make_pod("a", requests={"cpu": "1000m"}),
    "ports": make_pod("a", requests={"cpu": "1"}, host_ports=[80]),
    "a selector": make_pod("a", requests={"cpu": "1"}, spec={"nodeSelector": {"a": "b"}}),
    "tolerations": make_pod("a", requests={"cpu": "1"}, spec={"tolerations": [{"key": "a"}]}),
    "overhead": make_pod("a", requests={"cpu": "1"}, spec={"overhead": {"cpu": "1m"}}),
    "an image as a volume": make_pod(
        "a", requests={"cpu": "1"}, spec={"volumes": [{"name": "v", "image": {"reference": "i"}}]}
    ),
    "having a claim": make_pod("a", requests={"cpu": "1"}, spec=claiming("c")),
    "a resize under way": make_pod(
        "a",
        requests={"cpu": "1"},
        status={"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]},
    ),
}


@pytest.fixture
def shape_of(believer):
    return believer.cluster.shapes.shape_of


@pytest.mark.parametrize("pod", SAME.values(), ids=SAME)
def test_one_shape_for_pods_that_differ_in(pod, shape_of):
    """All results that are cached by shape are equal for such pods."""
    assert shape_of(pod) is shape_of(make_pod("a", requests={"cpu": "1"}))


@pytest.mark.parametrize("pod", OTHER.values(), ids=OTHER)
def test_two_shapes_for_pods_that_differ_in(pod, shape_of):
    """With too many shapes scheduling is slower, with too few it is wrong."""
    assert shape_of(pod) is not shape_of(make_pod("a", requests={"cpu": "1"}))


def test_one_shape_for_pods_with_other_claims(shape_of):
    """Pods of a StatefulSet have their own claims; the volume plugins read the pod."""
    one, other = (shape_of(make_pod("a", spec=claiming(name))) for name in ("c-0", "c-1"))
    assert one is other
    assert one.has_volumes


def test_the_order_of_a_selector_does_not_matter(shape_of):
    """JSON objects have no order."""
    one = make_pod("a", spec={"nodeSelector": {"a": "1", "b": "2"}})
    other = make_pod("a", spec={"nodeSelector": {"b": "2", "a": "1"}})
    assert shape_of(one) is shape_of(other)


def test_a_resize_counts_for_the_load_and_not_for_the_request(shape_of):
    """A running pod may use more than a recreated pod would request."""
    shape = shape_of(OTHER["a resize under way"])
    assert (dict(shape.requests)[0], dict(shape.load)[0]) == (1000, 3000)
    assert (shape.requested_of(0), shape.requested_of(99)) == (1000, 0)


@pytest.mark.parametrize("allocated", [{}, {"cpu": "1"}], ids=["", "allocated"])
def test_a_status_that_reports_the_resources_of_the_spec_makes_no_difference(shape_of, allocated):
    """The kubelet reports the resources of every running pod."""
    reported = {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": allocated}
    pending = make_pod("a", requests={"cpu": "1"})
    statuses = [{"name": pending.spec.containers[0].name, **reported}]
    running = make_pod("a", requests={"cpu": "1"}, status={"containerStatuses": statuses})
    assert shape_of(running) is shape_of(pending)
    assert is_same_shape(pending, replace(pending, status=running.status))


def test_allocated_resources_above_the_spec_are_another_shape(shape_of):
    """A resize that lowers the request still occupies what is allocated."""
    reported = {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"}}
    pending = make_pod("a", requests={"cpu": "1"})
    statuses = [{"name": pending.spec.containers[0].name, **reported}]
    lowered = make_pod("a", requests={"cpu": "1"}, status={"containerStatuses": statuses})
    assert dict(shape_of(lowered).load)[0] == 2000
    assert not is_same_shape(pending, replace(pending, status=lowered.status))


def test_a_resize_of_the_pod_is_another_shape(shape_of):
    """A pod with pod-level resources uses those of its status."""
    spec = {"resources": {"requests": {"cpu": "1"}}}
    plain = make_pod("a", spec=spec)
    resized = make_pod("a", spec=spec, status={"resources": {"requests": {"cpu": "3"}}})
    assert [dict(shape_of(pod).load)[0] for pod in (plain, resized)] == [1000, 3000]
    assert not is_same_shape(plain, resized)


def test_an_infeasible_resize_is_another_shape(shape_of):
    """The pod uses its allocated amounts, not the requested ones."""
    statuses = [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]
    refusal = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    asking = make_pod("a", requests={"cpu": "1"}, status={"containerStatuses": statuses})
    refused = make_pod(
        "a",
        requests={"cpu": "1"},
        status={"containerStatuses": statuses, "conditions": [refusal]},
    )
    assert [dict(shape_of(pod).load)[0] for pod in (asking, refused)] == [1000, 500]


def with_sidecar(**status):
    sidecar = {
        "name": "side",
        "restartPolicy": "Always",
        "resources": {"requests": {"cpu": "1"}},
    }
    return make_pod("a", requests={"cpu": "1"}, spec={"initContainers": [sidecar]}, status=status)


def test_a_resize_of_a_sidecar_is_another_shape(shape_of):
    """The status of a sidecar is among the initContainerStatuses."""
    resized = {"name": "side", "resources": {"requests": {"cpu": "3"}}}
    plain, larger = with_sidecar(), with_sidecar(initContainerStatuses=[resized])
    assert [dict(shape_of(pod).load)[0] for pod in (plain, larger)] == [2000, 4000]
    assert not is_same_shape(plain, replace(plain, status=larger.status))


def test_plain_statuses_of_init_containers_make_no_difference(shape_of):
    """They state no resources."""
    started = with_sidecar(initContainerStatuses=[{"name": "side", "restartCount": 1}])
    assert shape_of(started) is shape_of(with_sidecar())


def test_zero_requests_need_no_resource(shape_of):
    """A resource with request 0 is never insufficient."""
    shape = shape_of(make_pod("a", requests={"cpu": "0", "memory": "1"}))
    assert (dict(shape.requests), dict(shape.wanted)) == ({0: 0, 1: 1}, {1: 1})


def test_an_invalid_quantity_is_refused(shape_of):
    """No part of the shape is stored."""
    pod = make_pod("a", requests={"cpu": "much"})
    for _ in range(2):
        with pytest.raises(QuantityError):
            shape_of(pod)


def test_a_shape_is_dropped_with_its_last_pod(shape_of):
    """A later equal pod gets a new shape with another id."""
    first, kept = shape_of(make_pod("a")), shape_of(make_pod("a", requests={"cpu": "2"}))
    ids = {first.id, kept.id}
    gone = ref(first)
    del first
    assert gone() is None
    again = shape_of(make_pod("b"))
    assert again.id not in ids
    assert again.requests == shape_of(make_pod("c")).requests
    assert shape_of(make_pod("d", requests={"cpu": "2"})) is kept


def copy_of(pod, **fields):
    """A pod whose spec is another object with the same parts, but for `fields`."""
    return replace(pod, spec=replace(pod.spec, **fields))


def with_volume(name):
    """A pod whose only volume has a token."""
    return make_pod("x", spec={"volumes": [{"name": name, "projected": {}}]})


LIKE = make_pod(
    "a",
    requests={"cpu": "1"},
    spec={"nodeSelector": {"a": "b"}, "volumes": [{"name": "v", "projected": {}}]},
)
CHANGED_PARTS = {
    "nothing": {},
    "the node": {"node_name": "n1"},
    "the name of a token": {"volumes": with_volume("w").spec.volumes},
    "the volumes": {"volumes": make_pod("x", spec=claiming("c")).spec.volumes},
    "the list of the same volumes": {"volumes": (*LIKE.spec.volumes,)},
    "one more volume": {
        "volumes": (*LIKE.spec.volumes, *make_pod("x", spec=claiming("c")).spec.volumes)
    },
    "the selector": {"node_selector": {"a": "c"}},
    "the containers": {"containers": make_pod("x", requests={"cpu": "2"}).spec.containers},
    "the init containers": {"init_containers": OTHER["overhead"].spec.containers},
    "the overhead": {"overhead": {"cpu": "1"}},
    "the tolerations": {"tolerations": OTHER["tolerations"].spec.tolerations},
    "the host's network": {"host_network": True},
    "the host's users": {"host_users": False},
}


@pytest.mark.parametrize("fields", CHANGED_PARTS.values(), ids=CHANGED_PARTS)
def test_shared_spec_parts_do_not_change_the_shapes_of_pods(fields, believer):
    """Looked up directly after each other, or with another pod in between."""
    shape_of, changed = believer.cluster.shapes.shape_of, copy_of(LIKE, **fields)
    first = shape_of(LIKE)
    directly = shape_of(changed)
    shape_of(OTHER["ports"])
    assert shape_of(changed) is directly
    shape_of(OTHER["ports"])
    assert shape_of(LIKE) is first
    assert is_same_shape(LIKE, changed) == (directly is first)


@pytest.mark.parametrize("seed", range(4))
def test_equal_specs_share_a_shape_in_any_order(believer, seed):
    """With the same parts of specs or with equal ones, and with more specs than keys are kept."""
    chance, shape_of = Chance(seed), believer.cluster.shapes.shape_of
    pods = [*SAME.values(), *OTHER.values(), LIKE]
    pods += [make_pod("a", requests={"cpu": f"{number}m"}) for number in range(300)]
    pods += [copy_of(LIKE, **fields) for fields in CHANGED_PARTS.values()]
    pods += [replace(LIKE, status=pod.status) for pod in OTHER.values()]
    near = make_pod("a", spec={"affinity": {"podAffinity": {}}}).spec.affinity
    pods += [copy_of(pod, affinity=near) for pod in pods[:40]]
    expected = [shape_of(decode_as(Pod, as_json(pod))) for pod in pods]
    for _ in range(2_000):
        at = chance.below(len(pods)) if chance.one_in(3) else -1 - chance.below(60)
        assert shape_of(pods[at]) is expected[at]


def test_an_update_with_another_resize_has_another_shape():
    """Its spec is the same object, or has the same parts."""
    resized = replace(LIKE, status=OTHER["a resize under way"].status)
    assert is_same_shape(LIKE, replace(LIKE))
    assert not is_same_shape(LIKE, resized)
    assert not is_same_shape(resized, LIKE)
    assert is_same_shape(LIKE, copy_of(LIKE))
    assert not is_same_shape(resized, copy_of(LIKE))


def with_status(pod, *container_statuses, **fields):
    """A version of `pod` with other container statuses, and `fields` of the status."""
    status = replace(pod.status, container_statuses=container_statuses, **fields)
    return replace(pod, status=status)


RESIZED = OTHER["a resize under way"]


def test_a_restart_leaves_the_shape_of_a_resized_pod():
    """The new status of the container states the same resources."""
    (status,) = RESIZED.status.container_statuses
    assert is_same_shape(RESIZED, with_status(RESIZED, replace(status, restart_count=1)))
    resources = ResourceRequirements(requests=dict(status.resources.requests))
    assert is_same_shape(RESIZED, with_status(RESIZED, replace(status, resources=resources)))


@pytest.mark.parametrize(
    "changed",
    [
        {"resources": ResourceRequirements(requests={"cpu": "4"})},
        {"allocated_resources": {"cpu": "4"}},
        {"name": "other"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_container_status_that_changes_the_load_changes_the_shape(changed):
    """A status counts for the container of its name."""
    (status,) = RESIZED.status.container_statuses
    assert not is_same_shape(RESIZED, with_status(RESIZED, replace(status, **changed)))


def test_a_pending_resize_is_another_shape_until_it_ends():
    """Other conditions make no difference."""
    conditions = {
        name: make_pod("x", status={"conditions": [{"type": name, "status": "True"}]}).status
        for name in ("Ready", "PodResizePending")
    }
    (status,) = RESIZED.status.container_statuses
    ready, pending = (
        with_status(RESIZED, status, conditions=one.conditions) for one in conditions.values()
    )
    again = with_status(RESIZED, status, conditions=(*pending.status.conditions,))
    assert is_same_shape(RESIZED, ready)
    assert not is_same_shape(RESIZED, pending)
    assert not is_same_shape(ready, pending)
    assert not is_same_shape(pending, ready)
    assert is_same_shape(pending, again)
