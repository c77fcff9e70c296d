"""DaemonSets for which Karpenter keeps too little room on new nodes."""

from __future__ import annotations

import pytest

from fairlead.whatif.configuration.autoscaling.karpenter.daemon_overhead import daemon_notes
from fairlead.whatif.input.error import InputError


def container(cpu):
    return {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}


def daemon_set(cpu):
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [container(cpu)]},
            },
        },
    }


def agent(name, cpu, created):
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "creationTimestamp": created,
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"containers": [container(cpu)]},
    }


OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def test_a_newest_pod_that_requests_less_than_the_template_has_a_note(found):
    pods = [agent("a", "100m", NEW), agent("b", "1", OLD)]
    [note] = daemon_notes(found(daemon_set("500m"), *pods))
    assert note.startswith("The newest pod of DaemonSet default/agent (cpu) requests less than")


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param([], id="no pod, so the template counts"),
        pytest.param([agent("a", "100m", OLD), agent("b", "500m", NEW)], id="the newest is equal"),
        pytest.param([agent("a", "600m", NEW)], id="the newest requests more"),
    ],
)
def test_other_daemon_sets_need_no_note(found, pods):
    assert list(daemon_notes(found(daemon_set("500m"), *pods))) == []


@pytest.mark.parametrize(
    ("template", "pod", "problem"),
    [
        ("many", "1", "DaemonSet default/agent: spec.template.spec.containers[0].resources."),
        ("1", "many", "Pod default/a: spec.containers[0].resources.requests[cpu]: Invalid value"),
    ],
)
def test_an_invalid_amount_is_refused(found, template, pod, problem):
    objects = found(daemon_set(template), agent("a", pod, NEW))
    with pytest.raises(InputError) as refused:
        list(daemon_notes(objects))
    assert problem in str(refused.value)


def test_a_daemon_set_without_a_template_needs_no_note(found):
    written = daemon_set("1")
    written["spec"]["template"] = None
    assert list(daemon_notes(found(written, agent("a", "100m", NEW)))) == []
