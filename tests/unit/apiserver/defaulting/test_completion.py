"""Defaults of new objects."""

from __future__ import annotations

import pytest

from fairlead.apiserver.defaulting.defaulter import completed
from fairlead.apiserver.defaulting.pod import pull_policy
from fairlead.apiserver.schema.decoder import decoded
from fairlead.apiserver.schema.model import schema_of, schemas


def made(api_version, kind, **content):
    schema = schema_of(api_version, kind)
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **content}
    return completed(schema, decoded(schema, manifest)[0])


def pod_spec(**spec):
    return made("v1", "Pod", spec={"containers": [{"name": "c", "image": "nginx"}], **spec})["spec"]


def template(**spec):
    return {"spec": {"containers": [{"name": "c", "image": "nginx"}], **spec}}


def test_the_defaults_of_a_pod():
    assert pod_spec() == {
        "containers": [
            {
                "name": "c",
                "image": "nginx",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "Always",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }


def test_given_values_are_kept():
    spec = pod_spec(terminationGracePeriodSeconds=0, restartPolicy="Never")
    assert (spec["terminationGracePeriodSeconds"], spec["restartPolicy"]) == (0, "Never")


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.25", "IfNotPresent"),
        ("registry.local:5000/nginx", "Always"),
        ("registry.local:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:0123", "IfNotPresent"),
    ],
)
def test_the_pull_policy_depends_on_the_tag_of_the_image(image, policy):
    """An image is always pulled if its tag can refer to different images."""
    assert pull_policy(image) == policy


def test_limits_are_default_requests_of_pods_but_not_of_templates():
    resources = {"limits": {"cpu": "1"}}
    containers = [{"name": "c", "image": "i", "resources": resources}]
    alone = made("v1", "Pod", spec={"containers": containers})["spec"]
    among = made("apps/v1", "ReplicaSet", spec={"template": {"spec": {"containers": containers}}})
    assert alone["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    inner = among["spec"]["template"]["spec"]
    assert "requests" not in inner["containers"][0]["resources"]
    assert "enableServiceLinks" not in inner


def test_on_the_host_network_the_host_port_is_the_container_port():
    containers = [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]
    spec = pod_spec(containers=containers, hostNetwork=True)
    port = {"containerPort": 80, "hostPort": 80, "protocol": "TCP"}
    assert spec["containers"][0]["ports"] == [port]


def test_a_volume_without_a_source_is_an_empty_dir():
    assert pod_spec(volumes=[{"name": "v"}])["volumes"] == [{"name": "v", "emptyDir": {}}]


def test_the_defaults_of_a_deployment():
    spec = made("apps/v1", "Deployment", spec={"template": template()})["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)


@pytest.mark.parametrize(
    ("spec", "completions"),
    [({}, 1), ({"parallelism": 3}, None), ({"completions": 2}, 2)],
    ids=["no fields", "parallelism only", "completions"],
)
def test_the_default_completions_of_a_job(spec, completions):
    job = made("batch/v1", "Job", spec={"template": template(), **spec})
    assert job["spec"].get("completions") == completions


def test_the_defaults_of_a_service():
    spec = made("v1", "Service", spec={"ports": [{"port": 80}]})["spec"]
    assert spec == {
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
    }


def test_the_default_mode_of_an_address_of_a_load_balancer():
    addresses = [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2", "ipMode": "Proxy"}, {"hostname": "a.b"}]
    status = {"loadBalancer": {"ingress": addresses}}
    service = made("v1", "Service", spec={"type": "LoadBalancer"}, status=status)
    assert service["status"]["loadBalancer"]["ingress"] == [
        {"ip": "192.0.2.1", "ipMode": "VIP"},
        *addresses[1:],
    ]


def test_the_default_session_affinity_timeout_is_three_hours():
    spec = made("v1", "Service", spec={"sessionAffinity": "ClientIP"})["spec"]
    assert spec["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10_800}}


def test_string_data_of_a_secret_becomes_data():
    secret = made("v1", "Secret", stringData={"k": "v"})
    assert (secret["type"], secret["data"]) == ("Opaque", {"k": "dg=="})
    assert "stringData" not in secret


def test_the_maximum_of_a_limit_range_is_its_default_limit_and_request():
    item = {"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "10m"}}
    limits = made("v1", "LimitRange", spec={"limits": [item]})["spec"]["limits"]
    assert limits == [{**item, "default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}}]


def test_quantities_below_one_thousandth_are_rounded_up():
    hard = made("v1", "ResourceQuota", spec={"hard": {"cpu": "100u"}})["spec"]["hard"]
    assert hard == {"cpu": "1m"}


def test_the_defaults_of_ports_in_endpoints_and_endpoint_slices_differ():
    subset = {"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}
    old = made("v1", "Endpoints", subsets=[subset])["subsets"][0]["ports"]
    new = made("discovery.k8s.io/v1", "EndpointSlice", addressType="IPv4", ports=[{"port": 80}])
    assert old == [{"port": 80, "protocol": "TCP"}]
    assert new["ports"] == [{"name": "", "port": 80, "protocol": "TCP"}]


@pytest.mark.parametrize("path", schemas().kinds)
def test_defaulting_is_idempotent_for_every_kind(path):
    """Defaulting does not change an object that has its defaults, for every kind."""
    api_version, kind = path.rsplit("/", 1)
    schema = schema_of(api_version, kind)
    once = completed(schema, decoded(schema, {})[0])
    assert completed(schema, once) == once
    assert decoded(schema, once)[0] == once


def test_a_volume_claim_template_gets_the_kind_of_a_claim():
    """upstream: pkg/apis/apps/v1/conversion.go"""
    claim = {"apiVersion": "a", "kind": "b", "metadata": {"name": "c"}, "spec": {}}
    stored = made("apps/v1", "StatefulSet", spec={"volumeClaimTemplates": [claim]})
    [claim] = stored["spec"]["volumeClaimTemplates"]
    assert (claim["apiVersion"], claim["kind"]) == ("v1", "PersistentVolumeClaim")
