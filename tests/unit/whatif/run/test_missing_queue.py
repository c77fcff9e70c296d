"""A missing queue or PodGroup that pods of the batch scheduler wait for is named."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.configuration.batch.options import BatchOptions
from fairlead.whatif.question import IN_BOTH_RUNS, PODS_STAY, what_if

QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "default"},
    "spec": {"weight": 1},
}


@pytest.fixture
def ask(make, snapshot):
    """Returns the outcome for a pending pod of the batch scheduler `source` and `objects`."""

    def run(source, *objects, **meta):
        pod = make.pod("train", schedulerName="volcano")
        pod["metadata"] |= meta
        conditions = Conditions(batch=BatchOptions(source=source))
        return what_if(snapshot(make.node("a"), pod, *objects), ClusterChange(), conditions)

    return run


def notes_about_objects(outcome):
    """Return the notes except those of every what-if with a configuration and no change."""
    notes = [note for note in outcome.notes if note not in (IN_BOTH_RUNS, PODS_STAY)]
    return [note for note in notes if not note.endswith(" says why pods are pending.")]


@pytest.mark.parametrize("source", ["kube-batch", "kube-batch-upstream", "volcano"])
def test_the_missing_default_queue_is_named_with_a_remedy(ask, source):
    outcome = ask(source).changed
    assert [pod.reason for pod in outcome.pending] == ['queue "default" does not exist']
    [note] = notes_about_objects(outcome)
    assert note.startswith('Queue "default" does not exist, and 1 job waits for it forever.')
    assert '"kind":"Queue","metadata":{"name":"default"}' in note


@pytest.mark.parametrize(
    ("source", "objects"), [("volcano", (QUEUE,)), ("fairlead", ())], ids=["exists", "built in"]
)
def test_no_note_is_written_if_the_queue_exists(ask, source, objects):
    outcome = ask(source, *objects).changed
    assert [pod.node for pod in outcome.placed] == ["a"]
    assert notes_about_objects(outcome) == []


def test_a_missing_pod_group_is_named(ask):
    group = {"scheduling.k8s.io/group-name": "trainers"}
    outcome = ask("volcano", QUEUE, annotations=group).changed
    assert [pod.reason for pod in outcome.pending] == ['PodGroup "default/trainers" does not exist']
    [note] = notes_about_objects(outcome)
    assert note == 'PodGroup "default/trainers" does not exist, and 1 pod waits for it forever.'
