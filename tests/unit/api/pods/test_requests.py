"""Effective resource requests of pods, with and without the defaults for scoring."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode_as
from fairlead.api.objects import Pod
from fairlead.api.pods.requests import (
    DEFAULT_MEMORY_BYTES,
    DEFAULT_MILLI_CPU,
    pod_nonzero_requests,
    pod_requests,
)

MI = 2**20
GI = 2**30
DEFAULTS = (DEFAULT_MILLI_CPU, DEFAULT_MEMORY_BYTES)


def container(name="main", *, sidecar=False, **requests):
    form = {"name": name, "resources": {"requests": requests}}
    return form | {"restartPolicy": "Always"} if sidecar else form


def pod(*containers, init=(), status=None, **spec):
    forms = {"containers": list(containers), "initContainers": list(init)}
    return decode_as(Pod, {"spec": forms | spec, "status": status or {}})


def test_a_pod_without_requests_has_no_requests_and_default_nonzero_requests():
    """The defaults are used only for scoring."""
    assert pod_requests(pod(container())) == {}
    assert pod_nonzero_requests(pod(container()), existing=False) == DEFAULTS
    assert pod_nonzero_requests(pod(container()), existing=True) == DEFAULTS


def test_containers_add_up_and_cpu_is_in_milli():
    """Every resource is summed up; an explicit 0 is kept."""
    tested_pod = pod(
        container(cpu="100m", memory="1Gi", **{"nvidia.com/gpu": 1}),
        container("other", cpu="1.5", **{"ephemeral-storage": "0"}),
    )
    assert pod_requests(tested_pod) == {
        "cpu": 1600,
        "memory": GI,
        "nvidia.com/gpu": 1,
        "ephemeral-storage": 0,
    }


def test_requests_are_rounded_after_they_are_added_up():
    """Three times 0.4m is 2m, not 3m."""
    tested_pod = pod(*(container(f"c{i}", cpu="400u", memory="0.4") for i in range(3)))
    assert pod_requests(tested_pod) == {"cpu": 2, "memory": 2}


def test_the_largest_init_container_counts_if_it_exceeds_the_containers():
    """The maximum is taken for each resource."""
    tested_pod = pod(
        container(cpu="1", memory="1Gi"),
        init=[container("a", cpu="3", memory="512Mi"), container("b", cpu="2")],
    )
    assert pod_requests(tested_pod) == {"cpu": 3000, "memory": GI}


def test_requests_of_sidecars_are_added_to_later_init_containers():
    """The init steps need 100, 900, 300 and 900; the running pod needs 1000."""
    tested_pod = pod(
        container(cpu="700m"),
        init=[
            container("a", cpu="100m", sidecar=True),
            container("b", cpu="800m"),
            container("c", cpu="200m", sidecar=True),
            container("d", cpu="600m"),
        ],
    )
    assert pod_requests(tested_pod) == {"cpu": 1000}


def test_requests_of_sidecars_are_not_added_to_earlier_init_containers():
    """The order of init containers matters."""
    large, sidecar = container("large", cpu="2"), container("s", cpu="500m", sidecar=True)
    assert pod_requests(pod(container(cpu="1"), init=[large, sidecar])) == {"cpu": 2000}
    assert pod_requests(pod(container(cpu="1"), init=[sidecar, large])) == {"cpu": 2500}


def test_overhead_is_added_last():
    """It is added to the containers' requests, and to pod-level requests."""
    overhead = {"cpu": "50m", "memory": "10Mi", "example.com/x": "1"}
    assert pod_requests(pod(container(cpu="1"), overhead=overhead)) == {
        "cpu": 1050,
        "memory": 10 * MI,
        "example.com/x": 1,
    }
    level = {"requests": {"cpu": "2"}}
    assert pod_requests(pod(container(cpu="1"), overhead=overhead, resources=level))["cpu"] == 2050


def test_pod_level_requests_replace_cpu_memory_and_hugepages_only():
    """For resources that the pod level does not specify, the containers' requests count."""
    level = {
        "requests": {"cpu": "1", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "9"},
        "limits": {"memory": "9Gi"},
    }
    tested_pod = pod(
        container(cpu="3", memory="1Gi", **{"nvidia.com/gpu": 1, "hugepages-2Mi": "2Mi"}),
        resources=level,
    )
    assert pod_requests(tested_pod) == {
        "cpu": 1000,
        "memory": GI,
        "nvidia.com/gpu": 1,
        "hugepages-2Mi": 4 * MI,
    }


# --- in-place resize ------------------------------------------------------------------------


def resizing(*, reason="", statuses=(), init_statuses=(), **status):
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return {
        "conditions": conditions if reason else [],
        "containerStatuses": list(statuses),
        "initContainerStatuses": list(init_statuses),
        **status,
    }


def reported(name="main", *, allocated=None, **actual):
    return {
        "name": name,
        "resources": {"requests": actual},
        "allocatedResources": allocated or {},
    }


@pytest.mark.parametrize(("reason", "cpu"), [("", 3000), ("Deferred", 3000), ("Infeasible", 2000)])
def test_a_resized_pod_has_the_maximum_of_desired_allocated_and_actual_requests(reason, cpu):
    """If the resize is infeasible, the desired amount does not count."""
    status = resizing(reason=reason, statuses=[reported(cpu="1", allocated={"cpu": "2"})])
    resized = pod(container(cpu="3"), status=status)
    assert pod_requests(resized, existing=True) == {"cpu": cpu}
    assert pod_requests(resized) == {"cpu": 3000}


def test_a_shrinking_pod_keeps_its_actual_requests_until_it_is_resized():
    """For each resource, the maximum of actual and allocated amounts counts."""
    status = resizing(statuses=[reported(cpu="4", memory="1Gi", allocated={"memory": "2Gi"})])
    shrinking = pod(container(cpu="1", memory="512Mi"), status=status)
    assert pod_requests(shrinking, existing=True) == {"cpu": 4000, "memory": 2 * GI}


def test_a_container_status_without_resources_is_ignored():
    """allocatedResources alone are ignored."""
    status = resizing(statuses=[{"name": "main", "allocatedResources": {"cpu": "9"}}])
    assert pod_requests(pod(container(cpu="1"), status=status), existing=True) == {"cpu": 1000}


def test_sidecars_are_resized_and_ordinary_init_containers_are_not():
    """Sidecars have their statuses in initContainerStatuses."""
    status = resizing(init_statuses=[reported("setup", cpu="9"), reported("side", cpu="2")])
    tested_pod = pod(
        container(cpu="1"),
        init=[container("setup", cpu="1"), container("side", cpu="1", sidecar=True)],
        status=status,
    )
    assert pod_requests(tested_pod, existing=True) == {"cpu": 3000}


@pytest.mark.parametrize(("reason", "cpu"), [("", 3000), ("Infeasible", 2000)])
def test_pod_level_requests_are_resized_too(reason, cpu):
    """The pod's own status counts; other resources are those of the containers."""
    status = resizing(
        reason=reason,
        resources={"requests": {"cpu": "1", "memory": "9Gi"}},
        allocatedResources={"cpu": "2"},
    )
    tested_pod = pod(
        container(cpu="7", memory="1Gi"), resources={"requests": {"cpu": "3"}}, status=status
    )
    assert pod_requests(tested_pod, existing=True) == {"cpu": cpu, "memory": GI}
    assert pod_requests(tested_pod) == {"cpu": 3000, "memory": GI}


# --- as scores count them -------------------------------------------------------------------


def test_missing_requests_of_each_container_are_replaced_by_defaults():
    """An explicit 0 stays 0."""
    tested_pod = pod(
        container(cpu="1"), container("b", memory="1Gi"), container("c", cpu=0, memory=0)
    )
    expected = (1000 + DEFAULT_MILLI_CPU, GI + DEFAULT_MEMORY_BYTES)
    assert pod_nonzero_requests(tested_pod, existing=False) == expected
    assert pod_nonzero_requests(tested_pod, existing=True) == expected


def test_defaults_apply_to_init_containers_and_sidecars():
    """So an init container without requests can be the largest."""
    small = container(cpu="10m", memory="10Mi")
    assert pod_nonzero_requests(pod(small, init=[container("i")]), existing=False) == DEFAULTS
    assert pod_nonzero_requests(pod(small, init=[container("s", sidecar=True)]), existing=True) == (
        10 + DEFAULT_MILLI_CPU,
        10 * MI + DEFAULT_MEMORY_BYTES,
    )


def test_nonzero_requests_of_an_incoming_pod_ignore_pod_level_requests():
    """The containers with defaults count, and the overhead is added."""
    tested_pod = pod(
        container(cpu="1"), resources={"requests": {"cpu": "5"}}, overhead={"memory": "1Mi"}
    )
    assert pod_nonzero_requests(tested_pod, existing=False) == (1000, DEFAULT_MEMORY_BYTES + MI)


def test_nonzero_requests_of_an_existing_pod_use_pod_level_requests():
    """A default is used only for a resource that appears nowhere in the pod."""
    level = {"requests": {"cpu": "5"}}
    tested_pod = pod(container(), container("b"), resources=level)
    assert pod_nonzero_requests(tested_pod, existing=True) == (5000, 2 * DEFAULT_MEMORY_BYTES)
    present = pod(container(memory="0"), container("b"), resources=level)
    assert pod_nonzero_requests(present, existing=True) == (5000, 0)
    by_overhead = pod(container(), resources=level, overhead={"memory": "1Mi"})
    assert pod_nonzero_requests(by_overhead, existing=True) == (5000, MI)


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/x"]), st.integers(0, 9), max_size=3
)
containers = st.builds(lambda requests: container(**requests), amounts)
init_containers = st.builds(
    lambda requests, sidecar: container(sidecar=sidecar, **requests), amounts, st.booleans()
)


def moments(forms, init_forms):
    """Return the sets of containers that run at the same time, one for each step of the start."""
    alive = []
    for form in init_forms:
        yield [*alive, form]
        if "restartPolicy" in form:
            alive.append(form)
    yield [*alive, *forms]


@given(st.lists(containers, min_size=1, max_size=3), st.lists(init_containers, max_size=4))
def test_requests_are_the_maximum_over_all_phases_of_the_pod(forms, init_forms):
    """For each resource, this is the maximum over all steps of the running containers' sum."""
    together = [
        [form["resources"]["requests"] for form in moment] for moment in moments(forms, init_forms)
    ]
    named = {name for moment in together for requests in moment for name in requests}
    expected = {
        name: max(sum(requests.get(name, 0) for requests in moment) for moment in together)
        * (1000 if name == "cpu" else 1)
        for name in named
    }
    assert pod_requests(pod(*forms, init=init_forms)) == expected


@given(st.lists(containers, min_size=1, max_size=3), st.lists(init_containers, max_size=3))
def test_nonzero_requests_are_at_least_the_requests(forms, init_forms):
    """Defaults only add amounts."""
    tested_pod = pod(*forms, init=init_forms)
    real = pod_requests(tested_pod)
    for existing in (False, True):
        milli_cpu, memory = pod_nonzero_requests(tested_pod, existing=existing)
        assert milli_cpu >= real.get("cpu", 0)
        assert memory >= real.get("memory", 0)
