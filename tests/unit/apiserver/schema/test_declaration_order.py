"""Objects in the order of their types' fields, and as upstream's own types print them."""

from __future__ import annotations

from fairlead.apiserver.schema.declaration_order import as_declared
from fairlead.apiserver.schema.gojson.internal_type import as_internal
from fairlead.apiserver.schema.model import schema_of, schemas


def internal(definition, value):
    return as_internal(schemas().of_definition(f"io.k8s.api.{definition}"), value)


def test_fields_are_in_declaration_order_and_map_keys_are_sorted():
    sent = {"spec": {"nodeSelector": {"b": "1", "a": "2"}, "containers": []}, "kind": "Pod"}
    made = as_declared(schema_of("v1", "Pod"), sent)
    assert list(made) == ["kind", "spec"]
    assert list(made["spec"]) == ["containers", "nodeSelector"]
    assert list(made["spec"]["nodeSelector"]) == ["a", "b"]


def test_data_without_a_schema_keeps_its_order():
    sent = {"data": {"b": 1, "a": 2}}
    assert list(as_declared(schema_of("apps/v1", "ControllerRevision"), sent)["data"]) == ["b", "a"]


def test_unset_fields_are_printed_with_their_zero_values():
    assert internal("core.v1.ContainerPort", {"containerPort": 80}) == {
        "Name": "",
        "HostPort": 0,
        "ContainerPort": 80,
        "Protocol": "",
        "HostIP": "",
    }


def test_unset_pointers_and_lists_are_null():
    shown = internal("core.v1.Container", {"name": "c", "tty": True})
    assert shown["RestartPolicy"] is None
    assert shown["Resources"] == {"Limits": None, "Requests": None, "Claims": None}
    assert list(shown)[-1] == "TTY"


def test_go_names_can_differ_from_json_names():
    shown = internal("core.v1.RBDVolumeSource", {"monitors": ["m"], "image": "i"})
    assert shown["CephMonitors"] == ["m"]
    assert shown["RBDImage"] == "i"


def test_template_metadata_is_printed_inline():
    shown = internal("core.v1.PodTemplateSpec", {"metadata": {"labels": {"a": "b"}}, "spec": {}})
    assert list(shown) == ["labels", "Spec"]


def test_host_namespace_fields_are_printed_in_the_security_context():
    spec = {"hostNetwork": True, "securityContext": {"runAsUser": 1}}
    context = internal("core.v1.PodSpec", spec)["SecurityContext"]
    assert list(context)[:2] == ["HostNetwork", "HostPID"]
    assert (context["HostNetwork"], context["HostPID"], context["RunAsUser"]) == (True, False, 1)


def test_selectors_are_printed_by_their_json_names():
    shown = internal("core.v1.PodAffinityTerm", {"labelSelector": {"matchLabels": {"a": "b"}}})
    assert shown["LabelSelector"] == {"matchLabels": {"a": "b"}}


def test_an_empty_object_of_every_type_can_be_printed():
    tables = schemas()
    kinds = [path.rsplit("/", 1) for path in tables.kinds]
    assert all(
        isinstance(as_internal(tables.of_kind(*kind), {}), dict)
        for kind in kinds
        if tables.of_kind(*kind).fields
    )
