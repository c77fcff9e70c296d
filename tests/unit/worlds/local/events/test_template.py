"""Events that are written with a template of an earlier event."""

from __future__ import annotations

import json
from itertools import count, product

import pytest
from msgspec.structs import replace

from fairlead.apiserver.error import ApiError
from fairlead.engine.core.command import ObjectRef, RecordEvent
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.issuer import Component
from fairlead.worlds.local.events import template
from fairlead.worlds.local.events.template import EventStrings, EventTemplates
from fairlead.worlds.local.events.writer import EventWriter
from fairlead.worlds.local.field_manager import FieldManagers

POD = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
PODS = "/api/v1/namespaces/default/pods"
SUBJECTS = (
    ObjectRef("Pod", "default", "a", "u"),
    ObjectRef("Pod", "default", "a"),
    ObjectRef("Pod", "kube-system", "gone", "u"),
    ObjectRef("Node", "", "node-0", "u"),
    ObjectRef("Widget", "default", "w"),
)
WRITERS = (("kubelet", ""), ("default-scheduler", "Binding"), ("job-controller", ""))
COMPONENTS = {
    "kubelet": Component.KUBELET,
    "default-scheduler": Component.SCHEDULER,
    "job-controller": Component.CONTROLLER_MANAGER,
}
TEXTS = (("Pulled", "Pulled an image"), ("Killing", ""), ("Pulled", "twice " * 400))
PARTS = ("", "spec.containers{c}")


def all_events():
    """Yield each event of every writer about every subject, and then all of them again."""
    for number in range(2):
        for (writer, action), subject, (reason, note) in product(WRITERS, SUBJECTS, TEXTS):
            sort = "Normal" if note else "Warning"
            said = note and f"{note} {number}"
            yield RecordEvent(subject, sort, reason, action, said, writer)


def texts_of(cluster):
    """Yield all stored events as JSON, without random values."""
    uid = cluster.ask("POST", PODS, POD)["metadata"]["uid"]
    writer = EventWriter(cluster.local.store, FieldManagers())
    instants = count(seconds(1_767_225_600), seconds(10))
    for event, part in product(all_events(), PARTS):
        component = COMPONENTS[event.reporting_controller]
        writer.record(replace(event, field_path=part), component, next(instants))
    for event in cluster.list("event", None):
        meta = {**event["metadata"], "uid": "", "resourceVersion": ""}
        yield json.dumps({**event, "metadata": meta}).replace(uid, "")


def test_events_from_a_template_equal_events_from_the_general_encoder(make_cluster, monkeypatch):
    """The texts are equal, byte for byte, for every writer and subject."""
    short = list(texts_of(make_cluster(nodes=1)))
    monkeypatch.setattr(template, "FORMS_MAX", 0)  # a template is used only once
    assert short == list(texts_of(make_cluster(nodes=1)))
    assert len(short) > 2 * len(WRITERS) * len(SUBJECTS)


@pytest.fixture
def create(cluster):
    """Stores an event with this name in a namespace."""
    cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    forms = EventTemplates(cluster.local.store, FieldManagers())
    numbers = count()

    def manifest_of(strings):
        name, namespace = strings.own
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "a"},
            "reason": "Why",
        }

    def create(namespace, name=""):
        strings = EventStrings(("Why",), (name or f"e{next(numbers)}", namespace))
        forms.create(strings, manifest_of, Component.KUBELET, cluster.clock.now())

    return create


def test_events_in_missing_or_terminating_namespaces_are_refused(cluster, create):
    """Templates of events in other namespaces do not matter."""
    create("other")
    with pytest.raises(ApiError, match='namespaces "nowhere" not found'):
        create("nowhere")
    cluster.ask("POST", "/api/v1/namespaces/other/configmaps", {"metadata": {"name": "c"}})
    held = {"metadata": {"name": "c", "finalizers": ["example.com/held"]}}
    cluster.ask("PUT", "/api/v1/namespaces/other/configmaps/c", held)
    cluster.ask("DELETE", "/api/v1/namespaces/other")
    with pytest.raises(ApiError, match="is being terminated"):
        create("other")


def test_a_taken_event_name_is_refused(create):
    """A name that is already used is refused."""
    create("default", "one")
    with pytest.raises(ApiError, match='events "one" already exists'):
        create("default", "one")
