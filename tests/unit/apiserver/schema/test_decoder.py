"""Decoding of objects into the form that an API server stores."""

from __future__ import annotations

import pytest

from fairlead.apiserver.schema.decoder import decoded, empty
from fairlead.apiserver.schema.gojson.json_text import parse_json
from fairlead.apiserver.schema.model import schema_of
from fairlead.apiserver.schema.scalar import TypeMismatchError

POD = schema_of("v1", "Pod")
DEPLOYMENT = schema_of("apps/v1", "Deployment")


def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


def spec_of(**spec):
    return decoded(POD, pod(containers=[], **spec))[0]["spec"]


def resources_of(**resources):
    container = {"name": "c", "resources": resources}
    return decoded(POD, pod(containers=[container]))[0]["spec"]["containers"][0]["resources"]


def test_null_fields_are_dropped():
    assert "nodeName" not in spec_of(nodeName=None)


def test_nulls_in_maps_are_empty_values():
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"a": None}, "stringData": {"b": None}}
    made, _ = decoded(schema_of("v1", "Secret"), secret)
    assert (made["data"], made["stringData"]) == ({"a": ""}, {"b": ""})


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ({"hostNetwork": False}, {}),
        ({"nodeName": ""}, {}),
        ({"nodeSelector": {}}, {}),
        ({"tolerations": []}, {}),
        ({"terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 0}),
        ({"automountServiceAccountToken": False}, {"automountServiceAccountToken": False}),
        ({"securityContext": {}}, {"securityContext": {}}),
    ],
)
def test_an_empty_field_is_dropped_unless_it_has_a_meaning(written, kept):
    assert spec_of(**written) == {"containers": [], **kept}


def test_fields_without_omitempty_are_always_present():
    made, _ = decoded(POD, pod(containers=[{"image": "i"}]))
    assert made["spec"]["containers"] == [{"name": "", "image": "i", "resources": {}}]
    assert made["status"] == {}


def test_an_empty_object_has_its_mandatory_fields():
    assert empty(schema_of("policy/v1", "PodDisruptionBudget")) == {
        "metadata": {},
        "spec": {},
        "status": {
            "disruptionsAllowed": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
        },
    }


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1000000000", "1G"),
        ("1073741824", "1073741824"),
        (" 1", "1"),
        (2, "2"),
    ],
)
def test_quantities_are_canonical(written, kept):
    assert resources_of(limits={"cpu": written}) == {"limits": {"cpu": kept}}


def test_timestamps_are_stored_in_utc():
    manifest = {**pod(), "metadata": {"creationTimestamp": "2026-01-01T02:00:00.7+02:00"}}
    assert decoded(POD, manifest)[0]["metadata"] == {"creationTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (
            pod(containers=[{"ports": [{"containerPort": "80"}]}]),
            (
                "json: cannot unmarshal string into Go struct field "
                "ContainerPort.spec.containers.ports.containerPort of type int32"
            ),
        ),
        (
            pod(containers=[{"ports": [{"containerPort": 80.5}]}]),
            (
                "json: cannot unmarshal number 80.5 into Go struct field "
                "ContainerPort.spec.containers.ports.containerPort of type int32"
            ),
        ),
        (
            {"kind": "Pod", "spec": []},
            "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            {"kind": "Pod", "metadata": {"labels": []}},
            (
                "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of "
                "type map[string]string"
            ),
        ),
        (
            {"kind": "Pod", "metadata": {"creationTimestamp": "yesterday"}},
            (
                'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": '
                'cannot parse "yesterday" as "2006"'
            ),
        ),
        (
            pod(overhead={"cpu": "1e3m"}),
            (
                "quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ),
        ),
    ],
)
def test_a_wrong_type_is_refused(manifest, problem):
    """The message has upstream's text for the first value of a wrong type."""
    with pytest.raises(TypeMismatchError) as refused:
        decoded(POD, manifest)
    assert str(refused.value) == problem


def test_a_renew_time_without_microseconds_is_refused():
    lease = schema_of("coordination.k8s.io/v1", "Lease")
    with pytest.raises(TypeMismatchError, match=r'cannot parse "Z" as "\.000000"'):
        decoded(lease, {"spec": {"renewTime": "2024-01-01T00:00:02Z"}})


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"replicas": "two"}, "unrecognized type: int32"),
        ({"template": []}, "cannot restore struct from: slice"),
        ({"template": {"spec": {"containers": {}}}}, "cannot restore slice from map"),
    ],
)
def test_a_type_error_in_a_patch_has_its_own_message(patch, said):
    with pytest.raises(TypeMismatchError) as refused:
        decoded(DEPLOYMENT, {"spec": patch})
    assert refused.value.restoring == said


def test_unknown_and_repeated_fields_are_reported_with_their_paths():
    text = """{"kind": "Deployment", "metadata": {"name": "a", "name": "b", "labls": {}},
               "spec": {"replicas": 1, "replicas": 2,
                        "template": {"spec": {"containers": [{"name": "c", "foo": 1}]}}}}"""
    made, notes = decoded(DEPLOYMENT, parse_json(text))
    assert notes == [
        'duplicate field "metadata.name"',
        'unknown field "metadata.labls"',
        'duplicate field "spec.replicas"',
        'unknown field "spec.template.spec.containers[0].foo"',
    ]
    assert made["metadata"] == {"name": "b"}
    assert made["spec"]["replicas"] == 2


NO_MATCH = "json: cannot unmarshal number into Go struct field "


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '{"spec":{"volumes":[{"hostPath":{"path":1}}]}}',
            (
                f"{NO_MATCH}HostPathVolumeSource.spec.volumes.VolumeSource.hostPath.path of type "
                "string"
            ),
        ),
        (
            '{"spec":{"volumes":[{"name":1}]}}',
            f"{NO_MATCH}Volume.spec.volumes.name of type string",
        ),
        (
            '{"spec":{"containers":[{"imagePullPolicy":1}]}}',
            f"{NO_MATCH}Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
        ),
        (
            '{"spec":{"containers":[{"securityContext":{"capabilities":{"add":[1]}}}]}}',
            (
                f"{NO_MATCH}Capabilities.spec.containers.securityContext.capabilities.add of type "
                "v1.Capability"
            ),
        ),
        (
            '{"spec":{"ephemeralContainers":[{"startupProbe":{"exec":{"command":1}}}]}}',
            (
                f"{NO_MATCH}ExecAction.spec.ephemeralContainers.EphemeralContainerCommon."
                "startupProbe.ProbeHandler.exec.command of type []string"
            ),
        ),
        (
            '{"spec":{"overhead":1}}',
            f"{NO_MATCH}PodSpec.spec.overhead of type v1.ResourceList",
        ),
        (
            '{"spec":{"hostNetwork":1,"priority":"a"}}',
            f"{NO_MATCH}PodSpec.spec.hostNetwork of type bool",
        ),
        ('{"spec":{"priority":"a","overhead":{"cpu":"1ki"}}}', "unable to parse quantity's suffix"),
        (
            '{"spec":{"priority":"x"},"metadata":{"creationTimestamp":1}}',
            f"{NO_MATCH}ObjectMeta.metadata.creationTimestamp of type string",
        ),
    ],
)
def test_type_errors_use_upstreams_type_names(text, problem):
    """Recorded from upstream 1.36.4; an error that ends decoding precedes earlier type errors."""
    with pytest.raises(TypeMismatchError) as refused:
        decoded(POD, parse_json(text))
    assert str(refused.value) == problem


def test_bytes_can_be_given_as_lists_of_numbers():
    """Recorded from upstream 1.36.4."""
    secret = schema_of("v1", "Secret")
    assert decoded(secret, {"data": {"a": [104, 105]}})[0]["data"] == {"a": "aGk="}
    assert decoded(secret, {"data": {"a": [None]}})[0]["data"] == {"a": "AA=="}
    with pytest.raises(TypeMismatchError, match=r"number 300 into .* of type uint8$"):
        decoded(secret, {"data": {"a": [104, 300]}})


def test_a_repeated_field_is_merged_into_the_earlier_value():
    """Recorded from upstream 1.36.4."""
    text = (
        '{"spec":{"nodeName":"a","nodeName":null,"priority":1,"priority":null,'
        '"containers":[{"name":"a","image":"b"},{"name":"d"}],"containers":[{"name":"c"}]},'
        '"metadata":{"labels":{"a":"b"},"labels":{"c":"d"}}}'
    )
    made, notes = decoded(POD, parse_json(text))
    container = {"name": "c", "image": "b", "resources": {}}
    assert made["spec"] == {"nodeName": "a", "containers": [container]}
    assert made["metadata"] == {"labels": {"a": "b", "c": "d"}}
    assert notes == [
        'duplicate field "spec.nodeName"',
        'duplicate field "spec.priority"',
        'duplicate field "spec.containers"',
        'duplicate field "metadata.labels"',
    ]


def test_reported_field_names_are_escaped():
    """Recorded from upstream 1.36.4: an unknown field is not also reported as a duplicate."""
    made, notes = decoded(POD, parse_json('{"spec":{"a\\"\\u0001":1,"a\\"\\u0001":2}}'))
    assert notes == [r'unknown field "spec.a\"\x01"']
    assert made["spec"] == {"containers": None}
