"""PriorityClasses, and the priorities of new pods."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import POD, PRIORITY_CLASS


def words_of(act, *args):
    with pytest.raises(ApiError) as refusal:
        act(*args)
    return refusal.value.code, refusal.value.message


def resolved(spec):
    return spec.get("priorityClassName"), spec["priority"], spec["preemptionPolicy"]


# --- pods -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "spec", "expected"),
    [
        ([], {}, (None, 0, "PreemptLowerPriority")),
        ([{}], {}, (None, 0, "PreemptLowerPriority")),
        ([{}], {"priorityClassName": "high"}, ("high", 1000, "PreemptLowerPriority")),
        (
            [{"preemptionPolicy": "Never"}],
            {"priorityClassName": "high"},
            ("high", 1000, "Never"),
        ),
        ([{"globalDefault": True}], {}, ("high", 1000, "PreemptLowerPriority")),
        (
            [{"globalDefault": True, "preemptionPolicy": "Never"}],
            {},
            ("high", 1000, "Never"),
        ),
        (
            [{"globalDefault": True}],
            {"priorityClassName": "system-node-critical"},
            ("system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
        ),
        (
            [],
            {"priorityClassName": "system-cluster-critical"},
            ("system-cluster-critical", 2_000_000_000, "PreemptLowerPriority"),
        ),
        (
            [{}],
            {"priorityClassName": "high", "priority": 1000},
            ("high", 1000, "PreemptLowerPriority"),
        ),
        (
            [],
            {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"},
            (None, 0, "PreemptLowerPriority"),
        ),
    ],
    ids=[
        "without classes: 0",
        "a class that is not the default: 0",
        "its class's value",
        "its class's policy",
        "the default class",
        "the default class's policy",
        "an explicit class takes precedence over the default",
        "the system's classes exist without being stored",
        "the priority of the class can be given",
        "the default priority can be given",
    ],
)
def test_a_new_pod_gets_the_priority_of_its_class(
    store, pod, priority_class, now, *, classes, spec, expected
):
    for settings in classes:
        store.create(priority_class(**settings), now)
    assert resolved(store.create(pod(**spec), now)["spec"]) == expected


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        (
            {"priorityClassName": "high", "priority": 3},
            (
                "the integer value of priority (3) must not be provided in pod spec; priority "
                "admission controller computed 1000 from the given PriorityClass name"
            ),
        ),
        (
            {"priority": 7},
            (
                "the integer value of priority (7) must not be provided in pod spec; priority "
                "admission controller computed 0 from the given PriorityClass name"
            ),
        ),
        (
            {"priorityClassName": "high", "preemptionPolicy": "Never"},
            (
                "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
                "priority admission controller computed PreemptLowerPriority from the given "
                "PriorityClass name"
            ),
        ),
    ],
    ids=["an absent class", "another priority", "a priority without a class", "another policy"],
)
def test_a_new_pod_with_an_invalid_priority_is_refused(
    store, pod, priority_class, now, spec, words
):
    store.create(priority_class(), now)
    assert words_of(store.create, pod(**spec), now) == (403, f'pods "a" is forbidden: {words}')


def test_existing_pods_keep_their_priority(store, pod, priority_class, now):
    store.create(priority_class("old", 5), now)
    store.create(pod("first", priorityClassName="old"), now)
    store.create(pod("second"), now)
    store.delete(PRIORITY_CLASS, "", "old", now)
    store.create(priority_class("new", 9, globalDefault=True), now)
    for name, expected in (("first", 5), ("second", 0)):
        changed = store.patch(POD, "default", name, {"metadata": {"labels": {"a": "b"}}}, now)
        assert changed["spec"]["priority"] == expected
    assert words_of(store.create, pod("third", priorityClassName="old"), now)[0] == 403
    assert store.create(pod("fourth"), now)["spec"]["priority"] == 9


def test_pods_of_a_snapshot_keep_their_priority_even_without_a_class(store, pod, now):
    store.load([pod(priority=77, priorityClassName="gone"), pod("b")], now)
    spec = store.get(POD, "default", "a")["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (77, "gone")
    assert "priority" not in store.get(POD, "default", "b")["spec"]


def test_a_default_class_means_nothing_to_pods_of_a_snapshot(store, pod, priority_class, now):
    store.load([pod(), priority_class(globalDefault=True)], now)
    assert "priority" not in store.get(POD, "default", "a")["spec"]


def test_a_hand_written_pod_of_a_snapshot_is_resolved(store, pod, priority_class, now):
    store.load([pod(priorityClassName="high"), priority_class()], now)
    assert resolved(store.get(POD, "default", "a")["spec"])[:2] == ("high", 1000)


def test_a_hand_written_pod_of_a_snapshot_needs_its_class(store, pod, now):
    assert words_of(store.load, [pod(priorityClassName="nope")], now) == (
        403,
        'pods "a" is forbidden: no PriorityClass with name nope was found',
    )


# --- classes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "more", "words"),
    [
        (
            "high",
            1_000_000_001,
            {},
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        (
            "system-foo",
            5,
            {},
            (
                "metadata.name: Forbidden: priority class names with 'system-' prefix are "
                "reserved for "
                "system use only. error: system-foo is not a known system priority class"
            ),
        ),
        (
            "system-node-critical",
            5,
            {},
            (
                "metadata.name: Forbidden: priority class names with 'system-' prefix are "
                "reserved for "
                "system use only. error: value of system-node-critical PriorityClass must be "
                "2000001000"
            ),
        ),
        (
            "system-cluster-critical",
            2_000_000_000,
            {"globalDefault": True},
            (
                "metadata.name: Forbidden: priority class names with 'system-' prefix are "
                "reserved for "
                "system use only. error: globalDefault of system-cluster-critical "
                "PriorityClass must "
                "be false"
            ),
        ),
        (
            "high",
            5,
            {"preemptionPolicy": "Sometimes"},
            (
                'preemptionPolicy: Unsupported value: "Sometimes": supported values: '
                '"PreemptLowerPriority", "Never"'
            ),
        ),
        (
            "high",
            -(2**31) - 1,
            {},
            (
                "value: Invalid value: -2147483649: must be between -2147483648 and 2147483647, "
                "inclusive"
            ),
        ),
    ],
)
def test_an_invalid_class_is_refused(store, priority_class, now, *, name, value, more, words):
    assert words_of(store.create, priority_class(name, value, **more), now) == (
        422,
        f'PriorityClass.scheduling.k8s.io "{name}" is invalid: {words}',
    )


@pytest.mark.parametrize("name", ["High", "a_b", "-a", "a..b", "a" * 254])
def test_the_name_of_a_class_must_be_a_dns_subdomain(store, priority_class, now, name):
    code, message = words_of(store.create, priority_class(name), now)
    assert code == 422
    assert f'is invalid: metadata.name: Invalid value: "{name}"' in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a.b-c", 1_000_000_000),
        ("low", -(2**31)),
        ("system", 0),
        ("system-node-critical", 2_000_001_000),
    ],
)
def test_a_valid_class_is_accepted(store, priority_class, now, name, value):
    assert store.create(priority_class(name, value), now)["value"] == value


def test_a_class_without_a_value_has_the_value_0(store, priority_class, now):
    sent = priority_class()
    del sent["value"]
    stored = store.create(sent, now)
    assert (stored["value"], stored["preemptionPolicy"]) == (0, "PreemptLowerPriority")


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ({"value": 6}, "value: Forbidden: may not be changed in an update."),
        (
            {"preemptionPolicy": "Never"},
            'preemptionPolicy: Invalid value: "Never": field is immutable',
        ),
    ],
)
def test_value_and_preemption_policy_of_a_class_are_immutable(
    store, priority_class, now, patch, words
):
    store.create(priority_class("a", 5), now)
    assert words_of(store.patch, PRIORITY_CLASS, "", "a", patch, now) == (
        422,
        f'PriorityClass.scheduling.k8s.io "a" is invalid: {words}',
    )
    assert store.patch(PRIORITY_CLASS, "", "a", {"description": "x"}, now)["description"] == "x"


def test_a_second_default_class_is_refused(store, priority_class, now):
    store.create(priority_class("first", 1, globalDefault=True), now)
    already = "PriorityClass first is already marked as default. Only one default can exist"
    sent = priority_class("second", 2, globalDefault=True)
    assert words_of(store.create, sent, now) == (
        403,
        f'priorityclasses.scheduling.k8s.io "second" is forbidden: {already}',
    )
    store.create(priority_class("third", 3), now)
    patch = {"globalDefault": True}
    assert words_of(store.patch, PRIORITY_CLASS, "", "third", patch, now)[0] == 403
    store.patch(PRIORITY_CLASS, "", "first", {"description": "still the default"}, now)


def test_another_class_can_become_the_default(store, priority_class, now):
    store.create(priority_class("first", 1, globalDefault=True), now)
    store.patch(PRIORITY_CLASS, "", "first", {"globalDefault": None}, now)
    stored = store.create(priority_class("second", 2, globalDefault=True), now)
    assert stored["globalDefault"] is True


def test_two_defaults_in_a_snapshot_are_refused(store, priority_class, now):
    classes = [priority_class(name, 1, globalDefault=True) for name in ("b", "a")]
    assert words_of(store.load, classes, now) == (
        403,
        (
            'priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already '
            "marked as "
            "default. Only one default can exist"
        ),
    )


def test_system_classes_cannot_be_deleted(store, now):
    store.load([], now)
    names = [obj["metadata"]["name"] for obj in store.list(PRIORITY_CLASS)]
    assert names == ["system-cluster-critical", "system-node-critical"]
    assert words_of(store.delete, PRIORITY_CLASS, "", "system-node-critical", now) == (
        403,
        (
            'priorityclasses.scheduling.k8s.io "system-node-critical" is forbidden: this is a '
            "system "
            "priority class and cannot be deleted"
        ),
    )
