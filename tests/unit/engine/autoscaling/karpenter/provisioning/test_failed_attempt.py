"""A failed attempt of a pass counts for equal pods until the pass places a pod."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.api.objects import Pod
from fairlead.engine.autoscaling.karpenter.options import KarpenterOptions
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.failed_attempt import (
    FailedAttempt,
    FailedAttempts,
)
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.nodeclaim import refusal
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.pending_pod import PendingPod
from fairlead.engine.autoscaling.karpenter.provisioning.scheduling.scheduler import PodFactsCache


class FakeTopology:
    """A topology in which no pod has groups."""

    def __init__(self):
        self.groups = {}
        self.inverse = {}

    def repelling(self, _):
        return []


@pytest.fixture
def topology():
    return FakeTopology()


@pytest.fixture
def pending():
    """Return a function that makes pending pods; pods with equal specs share their facts."""
    facts = PodFactsCache(KarpenterOptions())

    def make(name, labels=None, **spec):
        value = {
            "metadata": {"name": name, "namespace": "default", "labels": labels or {"app": "x"}},
            "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
        }
        pod = msgspec.convert(value, Pod)
        return PendingPod(pod, facts.of(pod))

    return make


ATTEMPT = FailedAttempt([refusal("no room")], ["removing: a preference"], 3)
HOST = {"kubernetes.io/hostname": "n1"}
VOLUME = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


def added(attempts, pod, attempt=ATTEMPT):
    attempts.add(attempts.key_of(pod), pod, attempt)
    return attempts


def test_an_equal_pod_fails_in_the_same_way(topology, pending):
    attempts = added(FailedAttempts(topology), pending("a"))
    assert attempts.find(attempts.key_of(pending("b"))) is ATTEMPT


@pytest.mark.parametrize(
    "other",
    [
        {"labels": {"app": "y"}},
        {"tolerations": [{"operator": "Exists"}]},
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            ]
        },
    ],
    ids=["labels", "tolerations", "spread"],
)
def test_a_different_pod_is_tried(topology, pending, other):
    attempts = added(FailedAttempts(topology), pending("a"))
    assert attempts.find(attempts.key_of(pending("b", **other))) is None


@pytest.mark.parametrize("spec", [{"nodeSelector": HOST}, {"volumes": [VOLUME]}])
def test_attempts_that_depend_on_the_single_pod_are_not_remembered(topology, pending, spec):
    attempts = added(FailedAttempts(topology), pending("a", **spec))
    assert attempts.find(attempts.key_of(pending("b", **spec))) is None


def test_an_attempt_without_a_new_host_is_the_same_for_equal_pods_that_select_a_host(
    topology, pending
):
    """No text of the attempt can name the placeholder of a hostname."""
    attempt = FailedAttempt([refusal("limits have been exhausted")], [], 0)
    attempts = added(FailedAttempts(topology), pending("a", nodeSelector=HOST), attempt)
    assert attempts.find(attempts.key_of(pending("b", nodeSelector=HOST))) is attempt


def test_attempts_without_a_free_reservation_are_not_remembered(topology, pending):
    attempt = FailedAttempt([refusal("all are used up", reserved=True)], [], 1)
    attempts = added(FailedAttempts(topology), pending("a"), attempt)
    assert attempts.find(attempts.key_of(pending("b"))) is None


def test_all_pods_are_tried_again_after_a_placement_or_with_a_new_group(topology, pending):
    attempts = added(FailedAttempts(topology), pending("a"))
    attempts.forget()
    assert attempts.find(attempts.key_of(pending("b"))) is None
    added(attempts, pending("a"))
    topology.groups["spread"] = object()
    assert attempts.find(attempts.key_of(pending("b"))) is None
