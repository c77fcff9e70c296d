"""Notes about ConfigMaps and Secrets that applied pods need, but that do not exist."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.note.absent_reference import absent_reference_notes
from fairlead.whatif.snapshot.inventory import Inventory


def listed_object(kind, name, namespace="default"):
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta}


IN_DUMP = (
    listed_object("ConfigMap", "known"),
    listed_object("Secret", "known"),
    listed_object("ConfigMap", "lost", "other"),
)
OF_ENVIRONMENT = [
    {"name": "A", "value": "1"},
    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "lost", "key": "k"}}},
]
PROJECTED = {"sources": [{"configMap": {"name": "lost"}}, {"secret": {"name": "known"}}]}


@pytest.fixture
def notes(make, found):
    """Returns the notes about an applied Deployment whose pods have the fields `spec`."""

    def notes_of(spec, *in_dump, also=(), namespace="default"):
        web = make.workload()
        web["metadata"]["namespace"] = namespace
        inner = web["spec"]["template"]["spec"]
        inner["containers"][0] |= spec.pop("container", {})
        inner |= spec
        applied = found(web, *also)
        return list(absent_reference_notes(applied, Inventory([*applied, *found(*in_dump)])))

    return notes_of


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ({"container": {"envFrom": [{"configMapRef": {"name": "lost"}}]}}, "ConfigMap"),
        ({"container": {"envFrom": [{"secretRef": {"name": "lost"}}]}}, "Secret"),
        ({"container": {"env": OF_ENVIRONMENT}}, "Secret"),
        ({"initContainers": [{"name": "i", "image": "i", "env": OF_ENVIRONMENT}]}, "Secret"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "lost"}}]}, "Secret"),
        ({"volumes": [{"name": "v", "configMap": {"name": "lost"}}]}, "ConfigMap"),
        ({"volumes": [{"name": "v", "projected": PROJECTED}]}, "ConfigMap"),
        ({"volumes": [{"name": "v", "secret": {"secretName": "known"}}]}, ""),
        ({"volumes": [{"name": "v", "secret": {"secretName": "lost", "optional": True}}]}, ""),
        ({"volumes": [{"name": "v", "configMap": {"name": "kube-root-ca.crt"}}]}, ""),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, ""),
        ({"imagePullSecrets": [{"name": "lost"}]}, ""),
    ],
)
def test_objects_that_pods_need_and_that_do_not_exist_are_named(notes, spec, missing):
    note = (
        "The dump and the applied files lack objects without which pods would not start in a "
        f"cluster: {missing} default/lost (Deployment default/web). Simulated pods start without "
        "them."
    )
    assert notes(spec, *IN_DUMP) == ([note] if missing else [])


@pytest.mark.parametrize(
    "in_dump",
    [
        (),
        (listed_object("ConfigMap", "status", "kube-system"),),
        (listed_object("ConfigMap", "configuration", "volcano-system"),),
        (listed_object("Secret", "known"),),
    ],
    ids=["none", "of the autoscaler", "of another namespace", "of another kind"],
)
def test_there_is_no_note_if_the_dump_does_not_list_the_kind(notes, in_dump):
    """A snapshot of Fairlead contains only the ConfigMap of the autoscaler."""
    spec = {"container": {"envFrom": [{"configMapRef": {"name": "lost"}}]}}
    assert notes(spec, *in_dump, also=(listed_object("ConfigMap", "new"),)) == []


def test_the_file_may_contain_the_object(notes):
    spec = {"container": {"envFrom": [{"configMapRef": {"name": "lost"}}]}}
    assert notes(spec, *IN_DUMP, also=(listed_object("ConfigMap", "lost"),)) == []


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}


@pytest.mark.parametrize(
    ("in_dump", "also"),
    [
        ((listed_object("Secret", "known", "other"), listed_object("ConfigMap", "known")), ()),
        ((listed_object("Secret", "known", "other"),), (NAMESPACE,)),
    ],
    ids=["its ConfigMaps are listed", "it is new"],
)
def test_a_namespace_without_secrets_may_be_listed(notes, in_dump, also):
    [note] = notes({"container": {"env": OF_ENVIRONMENT}}, *in_dump, also=also)
    assert "Secret default/lost (Deployment default/web)" in note


@pytest.mark.parametrize(("secret_in", "count"), [("kube-system", 1), ("other", 0)])
def test_a_secret_shows_that_the_dump_lists_the_objects_of_kube_system(notes, secret_in, count):
    """A ConfigMap there does not: snapshots contain only those of autoscalers and schedulers."""
    spec = {"container": {"envFrom": [{"configMapRef": {"name": "lost"}}]}}
    config_maps = (listed_object("ConfigMap", "known", name) for name in ("default", "kube-system"))
    secret = listed_object("Secret", "known", secret_in)
    assert len(notes(spec, *config_maps, secret, namespace="kube-system")) == count
