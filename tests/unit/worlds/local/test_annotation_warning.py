"""Warnings about annotations of Fairlead that have no effect in a local cluster."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.kind import DEPLOYMENT, NODE
from fairlead.apiserver.request import ADMIN
from fairlead.apiserver.storage.storage import Storage
from fairlead.worlds.local.annotation_warning import AnnotationWarnings


def warnings(kind, obj, old=None, **changes):
    """Return the warnings about a write of `obj`; no write changes or refuses it."""
    found = []
    operation = Operation.CREATE if old is None else Operation.UPDATE
    write = Write(user=ADMIN, warn=found.append)
    attributes = AdmissionAttributes(operation, kind, obj, old, write=write)
    attributes = replace(attributes, **changes)
    assert AnnotationWarnings().admit(attributes, Storage()) is obj
    return found


def annotated(**annotations):
    named = {f"fairlead.dev/{key}": value for key, value in annotations.items()}
    return {"metadata": {"name": "n", "annotations": {**named, "example.com/x": "y"}}}


def templated(**annotations):
    return {"metadata": {"name": "w"}, "spec": {"template": annotated(**annotations)}}


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        (
            NODE,
            annotated(kublet="stopped"),
            "metadata.annotations[fairlead.dev/kublet]: unknown, so it has no effect; did you ",
        ),
        (
            NODE,
            annotated(kubelet="stoped"),
            "metadata.annotations[fairlead.dev/kubelet]: 'stoped' is not a kubelet behaviour",
        ),
        (NODE, annotated(usage="cpu=x"), "metadata.annotations[fairlead.dev/usage]: 'x': quant"),
        (DEPLOYMENT, annotated(load="cpu=x"), "metadata.annotations[fairlead.dev/load]: 'x': "),
        (
            DEPLOYMENT,
            templated(**{"ready-delay": "soon"}),
            "spec.template.metadata.annotations[fairlead.dev/ready-delay]: 'soon' is not a dur",
        ),
        (
            DEPLOYMENT,
            templated(zzz=""),
            "spec.template.metadata.annotations[fairlead.dev/zzz]: unknown, so it has no effect",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_annotation_without_effect_gets_a_warning(kind, obj, expected):
    (found,) = warnings(kind, obj)
    assert found.startswith(expected)


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        (NODE, annotated(kubelet="stopped", usage="memory=1Gi")),
        (NODE, {"metadata": {"name": "n"}}),
        (DEPLOYMENT, templated(**{"run-duration": "5m"})),
    ],
)
def test_an_annotation_with_an_effect_gets_no_warning(kind, obj):
    assert warnings(kind, obj) == []


def test_only_changed_annotations_get_a_warning():
    old = annotated(kubelet="stoped")
    assert warnings(NODE, annotated(kubelet="stoped"), old) == []
    assert warnings(NODE, annotated(kubelet="stoped", usage="cpu=1"), old) == []
    assert len(warnings(NODE, annotated(kubelet="halted"), old)) == 1


def test_writes_of_the_server_and_of_subresources_get_no_warning():
    wrong = annotated(kubelet="stoped")
    assert warnings(NODE, wrong, write=Write()) == []
    assert warnings(NODE, wrong, subresource="status") == []
