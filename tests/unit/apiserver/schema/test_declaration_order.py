"""Objects in the order of their types' fields, and as upstream's own types print them."""

from __future__ import annotations

from fairlead.apiserver.schema.declaration_order import as_declared
from fairlead.apiserver.schema.gojson.internal_type import as_internal
from fairlead.apiserver.schema.model import schema_of, schemas


def internal(definition, value):
    return as_internal(schemas().of_definition(f"io.k8s.api.{definition}"), value)


def test_members_stand_as_declared_and_keys_in_order():
    sent = {"spec": {"nodeSelector": {"b": "1", "a": "2"}, "containers": []}, "kind": "Pod"}
    made = as_declared(schema_of("v1", "Pod"), sent)
    assert list(made) == ["kind", "spec"]
    assert list(made["spec"]) == ["containers", "nodeSelector"]
    assert list(made["spec"]["nodeSelector"]) == ["a", "b"]


def test_what_no_type_knows_stays_as_it_is():
    sent = {"data": {"b": 1, "a": 2}}
    assert list(as_declared(schema_of("apps/v1", "ControllerRevision"), sent)["data"]) == ["b", "a"]


def test_fields_that_nobody_set_are_there():
    assert internal("core.v1.ContainerPort", {"containerPort": 80}) == {
        "Name": "",
        "HostPort": 0,
        "ContainerPort": 80,
        "Protocol": "",
        "HostIP": "",
    }


def test_pointers_and_lists_that_are_not_there_are_null():
    shown = internal("core.v1.Container", {"name": "c", "tty": True})
    assert shown["RestartPolicy"] is None
    assert shown["Resources"] == {"Limits": None, "Requests": None, "Claims": None}
    assert list(shown)[-1] == "TTY"


def test_names_in_the_language_and_in_json_may_differ_more():
    shown = internal("core.v1.RBDVolumeSource", {"monitors": ["m"], "image": "i"})
    assert shown["CephMonitors"] == ["m"]
    assert shown["RBDImage"] == "i"


def test_metadata_of_a_template_stand_beside_its_spec():
    shown = internal("core.v1.PodTemplateSpec", {"metadata": {"labels": {"a": "b"}}, "spec": {}})
    assert list(shown) == ["labels", "Spec"]


def test_what_a_pod_shares_with_its_host_is_part_of_its_security_context():
    spec = {"hostNetwork": True, "securityContext": {"runAsUser": 1}}
    context = internal("core.v1.PodSpec", spec)["SecurityContext"]
    assert list(context)[:2] == ["HostNetwork", "HostPID"]
    assert (context["HostNetwork"], context["HostPID"], context["RunAsUser"]) == (True, False, 1)


def test_selectors_are_printed_by_their_json_names():
    shown = internal("core.v1.PodAffinityTerm", {"labelSelector": {"matchLabels": {"a": "b"}}})
    assert shown["LabelSelector"] == {"matchLabels": {"a": "b"}}


def test_every_type_can_be_shown_empty():
    tables = schemas()
    kinds = [path.rsplit("/", 1) for path in tables.kinds]
    assert all(
        isinstance(as_internal(tables.of_kind(*kind), {}), dict)
        for kind in kinds
        if tables.of_kind(*kind).fields
    )
