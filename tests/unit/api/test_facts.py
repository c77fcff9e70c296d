"""The table of facts about fields: every row refers to a field of the schemas."""

from __future__ import annotations

import pytest

from fairlead.api.facts import default_of, facts_of, known_types, values_of
from fairlead.apiserver.schema.model import schemas


@pytest.mark.parametrize("type_name", known_types())
def test_every_row_refers_to_a_field_of_its_type(type_name):
    assert facts_of(type_name).fields.keys() <= _type(type_name).fields.keys()


@pytest.mark.parametrize("type_name", known_types())
def test_every_immutable_field_exists(type_name):
    for fixed in facts_of(type_name).immutable:
        schema = _type(type_name)
        for name in fixed.path.split("."):
            schema = schema.fields[name].schema


def _type(type_name):
    roots = (
        "io.k8s.api.",
        "io.k8s.apiextensions-apiserver.pkg.apis.",
        "io.k8s.kube-aggregator.pkg.apis.",
    )
    return next(found for root in roots if (found := _schema(f"{root}{type_name}")))


def _schema(definition):
    try:
        return schemas().of_definition(definition)
    except KeyError:
        return None


def test_values_are_in_upstreams_order():
    assert values_of("core.v1.PodSpec", "restartPolicy") == ("Always", "OnFailure", "Never")


def test_published_values_are_sorted():
    facts = facts_of("core.v1.PodSpec").fields["restartPolicy"]
    assert facts.published_values == ("Always", "Never", "OnFailure")


def test_a_default_is_a_json_value():
    assert default_of("core.v1.PodSpec", "terminationGracePeriodSeconds") == 30
    assert default_of("storage.v1.CSIDriverSpec", "volumeLifecycleModes") == ["Persistent"]


def test_a_published_default_need_not_be_applied():
    facts = facts_of("core.v1.LocalObjectReference")
    assert facts.published_defaults == {"name": ""}
    assert facts.defaults == {}


def test_types_without_rows_have_no_facts():
    assert facts_of("core.v1.Nothing").fields == {}


def test_all_volumes_of_files_have_the_same_default_mode():
    """Workload controllers compare templates by names of fields, whatever the types."""
    volumes = ("ConfigMap", "Secret", "DownwardAPI", "Projected")
    assert {default_of(f"core.v1.{name}VolumeSource", "defaultMode") for name in volumes} == {420}
