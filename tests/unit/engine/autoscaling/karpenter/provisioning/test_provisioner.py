"""A provisioning pass over several NodePools, DaemonSets and existing nodes."""

from __future__ import annotations

from fairlead.conformance.karpenter.scene import Scene

ZONE = "topology.kubernetes.io/zone"
ARCH = "kubernetes.io/arch"
PREFER = {"key": "spare", "effect": "PreferNoSchedule"}


def instance_type(name, cores, arch="amd64", zones=("a", "b")):
    stated = {
        "node.kubernetes.io/instance-type": [name],
        ZONE: list(zones),
        ARCH: [arch],
        "kubernetes.io/os": ["linux"],
        "karpenter.sh/capacity-type": ["on-demand", "reserved"],
    }
    return {
        "name": name,
        "requirements": [
            {"key": key, "operator": "In", "values": values} for key, values in stated.items()
        ],
        "capacity": {"cpu": str(cores), "memory": f"{cores * 4}Gi", "pods": "20"},
        "offerings": [
            {"zone": zone, "capacityType": "on-demand", "price": float(cores)} for zone in zones
        ],
    }


def pool(name, *, taints=(), **required):
    reference = {"group": "karpenter.test.sh", "kind": "TestNodeClass", "name": "default"}
    requirements = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in ({ZONE: required.get("zone"), ARCH: required.get("arch")}).items()
        if value
    ]
    spec = {"nodeClassRef": reference, "requirements": requirements, "taints": list(taints)}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": spec}}}


def container(cpu, ports=()):
    requests = {"cpu": cpu, "memory": "128Mi"}
    return {
        "name": "c",
        "image": "i",
        "resources": {"requests": requests},
        "ports": [{"containerPort": port, "hostPort": port} for port in ports],
    }


def pod(name, cpu, labels=None, **spec):
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [container(cpu)], **spec},
    }


def daemon_set(name, cpu, *terms, ports=()):
    spec = {"containers": [container(cpu, ports)]}
    if terms:
        stated = [
            {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
            for key, value in terms
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": stated}}
        spec["affinity"] = {"nodeAffinity": required}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": spec}}}


def node(name, cpu, *, taints=()):
    size = {"cpu": cpu, "memory": "32Gi", "pods": "20"}
    return {
        "metadata": {"name": name, "labels": {ZONE: "a", ARCH: "amd64"}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": size, "capacity": size},
    }


def passed(**case):
    scene = Scene({"now": "2026-01-01T00:00:00Z", **case})
    return scene.provisioner.provision(scene.now)


def apart(name, **spec):
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "x"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod(name, "1", {"app": "x"}, affinity=affinity, **spec)


def test_anti_affinity_counts_only_zones_of_pools_that_its_first_pod_tolerates():
    # upstream: topologygroup.go:NewTopologyGroup, topologydomaingroup.go:ForEachDomain
    found = passed(
        instanceTypes=[instance_type("t4", 4)],
        nodePools=[
            pool("open", zone="b"),
            pool("dedicated", zone="a", taints=[{"key": "own", "effect": "NoSchedule"}]),
        ],
        pods=[apart("p1"), apart("p2", tolerations=[{"operator": "Exists"}])],
    )
    assert [one.pods for one in found.requests] == [("default/p1",)]
    assert (
        "pod anti-affinity, key=topology.kubernetes.io/zone (counts = b: 1, "
        in (found.errors["default/p2"])
    )


def test_a_daemon_loses_the_terms_that_do_not_allow_an_earlier_pool():
    # upstream: scheduler.go:isDaemonPodCompatible removes them from the pod that all pools share
    found = passed(
        instanceTypes=[instance_type("arm", 4, "arm64"), instance_type("amd", 4)],
        nodePools=[pool("main"), pool("second", arch="arm64")],
        daemonSets=[daemon_set("d", "500m", (ARCH, "amd64"), ("team", "a"))],
        pods=[pod("p", "1", nodeSelector={ARCH: "amd64"})],
    )
    (request,) = found.requests
    assert request.pool.name == "main"
    assert request.requests["cpu"] == 1000


def test_ports_of_a_daemon_are_those_after_all_pools_have_been_compared():
    # upstream: scheduler.go:getDaemonHostPortUsage runs after getDaemonOverhead
    busy = pod("p", "1", nodeSelector={ARCH: "amd64"})
    busy["spec"]["containers"] = [container("1", (9100,))]
    found = passed(
        instanceTypes=[instance_type("arm", 4, "arm64"), instance_type("amd", 4)],
        nodePools=[pool("main", arch="arm64"), pool("second", arch="amd64")],
        daemonSets=[daemon_set("d", "500m", (ARCH, "amd64"), (ARCH, "arm64"), ports=(9100,))],
        pods=[busy],
    )
    (request,) = found.requests
    assert request.requests["cpu"] == 1500


def test_daemons_that_a_pool_was_compared_with_count_on_nodes_of_preferred_taints():
    found = passed(
        instanceTypes=[instance_type("t4", 4)],
        nodePools=[pool("main")],
        nodes=[node("n", "1", taints=[PREFER])],
        daemonSets=[daemon_set("d", "500m")],
        pods=[pod("p", "600m", tolerations=[{"operator": "Exists"}])],
    )
    assert [one.pods for one in found.requests] == [("default/p",)]


def test_a_pool_without_types_still_lets_pods_tolerate_preferred_taints():
    # upstream: scheduler.go:NewScheduler looks at all pools for toleratePreferNoSchedule
    found = passed(
        instanceTypes=[instance_type("t1", 1)],
        nodePools=[pool("main"), pool("gone", arch="s390x", taints=[PREFER])],
        nodes=[node("n", "4", taints=[PREFER])],
        pods=[pod("p", "3")],
    )
    assert not found.errors
    assert [one.state.name for one in found.existing if one.pods] == ["n"]


def test_a_pool_without_instance_types_adds_no_domains():
    # upstream: topology.go:buildDomainGroups goes over the pools that have instance types
    constraint = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    found = passed(
        instanceTypes=[instance_type("t4", 4)],
        nodePools=[pool("main", zone="a"), pool("unsold", zone="b")],
        poolInstanceTypes={"unsold": []},
        pods=[
            pod(name, "1", {"app": "x"}, topologySpreadConstraints=[constraint])
            for name in ("p", "q")
        ],
    )
    assert not found.errors


def test_reservations_of_a_pool_without_usable_types_count():
    # upstream: scheduler.go:NewScheduler passes the types of all pools to the reservation manager
    def reserved(name, capacity):
        offering = {"zone": "a", "capacityType": "reserved", "price": 0.1}
        offering |= {"reservationID": "r", "reservationCapacity": capacity}
        return {**instance_type(name, 4), "offerings": [offering]}

    found = passed(
        instanceTypes=[reserved("two", 2), reserved("one", 1)],
        nodePools=[pool("main", zone="a"), pool("arm", arch="arm64")],
        poolInstanceTypes={"main": ["two"], "arm": ["one"]},
        pods=[pod("p", "3"), pod("q", "3")],
    )
    assert [one.pods for one in found.requests] == [("default/p",)]
    assert "could not be reserved" in found.errors["default/q"]


def pod_with_resource_claim(name):
    spread = {
        "topologyKey": "nolabel",
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    found = pod(name, "1", {"app": "x"}, topologySpreadConstraints=[spread])
    found["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    found["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return found


def test_a_pod_with_resource_claims_is_relaxed_if_such_pods_are_not_ignored():
    # upstream: scheduler.go:trySchedule, which relaxes after every error except two kinds of error
    found = passed(
        options={"ignoreDRARequests": False},
        instanceTypes=[instance_type("t4", 4)],
        nodePools=[pool("open")],
        pods=[pod_with_resource_claim("p1")],
    )
    assert len(found.relaxations) == 1
    assert [one.pods for one in found.requests] == [("default/p1",)]


def test_an_ignored_pod_with_resource_claims_is_not_relaxed():
    # upstream: scheduler.go:trySchedule, IsDRAError
    found = passed(
        instanceTypes=[instance_type("t4", 4)],
        nodePools=[pool("open")],
        pods=[pod_with_resource_claim("p1")],
    )
    assert not found.relaxations
    assert "Dynamic Resource Allocation" in found.errors["default/p1"]


def pod_that_fits_nowhere(name, cpu, **policies):
    spread = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "matchLabelKeys": ["version"],
        **policies,
    }
    labels = {"app": "x", "version": "1"}
    return pod(name, cpu, labels, nodeSelector={"ghost": "y"}, topologySpreadConstraints=[spread])


def test_each_update_of_a_pod_adds_its_match_label_keys_again():
    # upstream: topology.go:newForTopologies changes the pod; scheduler.go:Solve updates it after
    # each failed attempt
    found = passed(
        instanceTypes=[instance_type("t4", 4)],
        nodePools=[pool("open")],
        pods=[pod_that_fits_nowhere("p1", "2"), pod("p2", "1")],
    )
    assert [one.reason.count('"key":"version"') for one in found.relaxations] == [1, 2]


def test_equal_pods_that_fit_nowhere_have_their_own_errors_and_relaxations():
    names = ["p1", "p2", "p3"]
    found = passed(
        instanceTypes=[instance_type("t4", 4)],
        nodePools=[pool("open")],
        pods=[*(pod_that_fits_nowhere(name, "2") for name in names), pod("p4", "1")],
    )
    # The pass places p4 at the end of the first round, and tries the other pods again.
    assert [one.pod.rpartition("/")[2] for one in found.relaxations] == [*names, *names]
    assert [one.reason.count('"key":"version"') for one in found.relaxations] == [1, 1, 1, 2, 2, 2]
    errors = {key.rpartition("/")[2]: text for key, text in found.errors.items()}
    assert sorted(errors) == names
    assert len(set(errors.values())) == 1


def test_ignored_constraints_do_not_get_match_label_keys():
    # upstream: topology.go:newForTopologies skips them before it adds the keys
    found = passed(
        options={"preferencePolicy": "Ignore"},
        instanceTypes=[instance_type("t4", 4)],
        nodePools=[pool("open")],
        pods=[pod_that_fits_nowhere("p1", "2")],
    )
    constraint = (
        '{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone",'
        '"whenUnsatisfiable":"ScheduleAnyway","labelSelector":{"matchLabels":{"app":"x"}},'
        '"matchLabelKeys":["version"]}'
    )
    assert [one.reason for one in found.relaxations] == [
        f"removing: spec.topologySpreadConstraints = {constraint}"
    ]


def test_the_text_of_a_relaxed_constraint_has_the_policies_that_the_pod_states():
    # upstream: preferences.go:removeTopologySpreadScheduleAnyway prints the JSON of the constraint
    policies = {"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}
    found = passed(
        instanceTypes=[instance_type("t4", 4)],
        nodePools=[pool("open")],
        pods=[pod_that_fits_nowhere("p1", "2", **policies)],
    )
    stated = '"nodeAffinityPolicy":"Honor","nodeTaintsPolicy":"Ignore","matchLabelKeys"'
    assert [stated in one.reason for one in found.relaxations] == [True]
