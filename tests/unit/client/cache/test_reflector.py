"""The reflector: its next actions, and the differences that it finds."""

from __future__ import annotations

import json

import pytest

from fairlead.client.api_resource import ApiResource
from fairlead.client.cache.reflector import (
    REFUSALS_MAX,
    STALE_LISTS_MAX,
    OpenWatch,
    PauseUntil,
    ReadPage,
    Reflector,
)

PODS = ApiResource("v1", "Pod", "pods", is_namespaced=True)
SECOND = 1_000_000_000


def make(**options):
    return Reflector(PODS, lambda: 0.0, **options)


def listing():
    """A reflector of a server that cannot stream lists."""
    reflector = make()
    reflector.next_action(0)
    reflector.failed(422, 0)
    return reflector


def pod(name, version, uid="", **metadata):
    meta = {"name": name, "namespace": "d", "uid": uid or f"u-{name}", **metadata}
    return {"metadata": {**meta, "resourceVersion": str(version)}}


def page(*items, version="10", then=""):
    meta = {"resourceVersion": version, "continue": then}
    return json.dumps({"kind": "PodList", "metadata": meta, "items": items}).encode()


def event(kind, obj):
    return json.dumps({"type": kind, "object": obj}).encode()


def summary(updates):
    return [("-" if one.is_deleted else "+") + one.object.metadata.name for one in updates]


def listed(reflector, body, now=0):
    assert isinstance(reflector.next_action(now), ReadPage)
    return summary(reflector.listed(body, now))


def test_the_first_list_is_streamed_if_the_server_supports_it():
    reflector = make()
    action = reflector.next_action(0)
    assert isinstance(action, OpenWatch)
    assert action.query["sendInitialEvents"] == "true"
    assert summary(reflector.watched(event("ADDED", pod("a", 3)), 0)) == ["+a"]
    assert not reflector.has_synced
    end = {"metadata": {"resourceVersion": "9"}}
    end["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
    assert reflector.watched(event("BOOKMARK", end), 0) == []
    assert reflector.has_synced
    assert reflector.next_action(0).query["resourceVersion"] == "9"


def test_a_server_without_streaming_lists_is_listed_in_pages():
    action = listing().next_action(0)
    assert isinstance(action, ReadPage)
    assert action.query == {"limit": "500"}


def test_a_watch_follows_the_last_page():
    reflector = listing()
    assert listed(reflector, page(pod("a", 1), then="t")) == ["+a"]
    assert not reflector.has_synced
    assert reflector.next_action(0).query["continue"] == "t"
    assert listed(reflector, page(pod("b", 2))) == ["+b"]
    assert reflector.has_synced
    assert reflector.next_action(0).query["resourceVersion"] == "10"


def synced():
    reflector = listing()
    listed(reflector, page(pod("a", 1), pod("b", 2)))
    return reflector


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        ("ADDED", pod("c", 11), ["+c"]),
        ("MODIFIED", pod("a", 11), ["+a"]),
        ("DELETED", pod("a", 11), ["-a"]),
        ("MODIFIED", pod("a", 11, uid="other"), ["-a", "+a"]),
        ("DELETED", pod("c", 11), []),
        ("DELETED", pod("a", 11, uid="other"), []),
        ("MODIFIED", pod("a", 1), []),
        ("ADDED", pod("c", 10), []),
    ],
    ids=[
        "a new object",
        "a changed object",
        "a deleted object",
        "a deletion that was missed",
        "an unknown object is deleted",
        "an earlier object of the name is deleted",
        "an older version",
        "an event that the list contains already",
    ],
)
def test_events_yield_the_differences(kind, obj, expected):
    assert summary(synced().watched(event(kind, obj), 0)) == expected


def test_a_repeated_event_yields_nothing():
    reflector = synced()
    line = event("DELETED", pod("a", 11))
    assert summary(reflector.watched(line, 0)) == ["-a"]
    assert reflector.watched(event("ADDED", pod("a", 9)), 0) == []
    assert reflector.watched(line, 0) == []


def test_a_watch_continues_at_the_last_version():
    reflector = synced()
    reflector.watched(event("MODIFIED", pod("a", 15)), 0)
    reflector.failed(0, 0)
    pause = reflector.next_action(0)
    assert isinstance(pause, PauseUntil)
    action = reflector.next_action(pause.instant)
    assert action.query["resourceVersion"] == "15"


def test_pauses_grow_until_a_watch_succeeds():
    reflector, pauses, now = synced(), [], 0
    for _ in range(8):
        reflector.failed(0, now)
        pauses.append((reflector.next_action(now).instant - now) / SECOND)
        now = reflector.next_action(now).instant
    assert pauses == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    reflector.ended(now)
    reflector.failed(0, now)
    assert reflector.next_action(now).instant - now == 0.8 * SECOND


def test_a_resource_of_every_server_is_not_absent():
    """A load balancer without a server behind it may answer every request with status 404."""
    reflector = make(is_always_served=True)
    for _ in range(2):
        reflector.next_action(60 * SECOND)
        reflector.failed(404, 0)
    assert (reflector.has_synced, reflector.is_served, reflector.refusal) == (False, True, 404)
    assert reflector.next_action(0).instant < 5 * SECOND
    listed(reflector, page(pod("a", 1)), 60 * SECOND)
    assert (reflector.has_synced, reflector.refusal) == (True, 0)


def test_a_resource_of_every_server_may_be_forbidden():
    reflector = make(is_always_served=True)
    reflector.next_action(0)
    reflector.failed(403, 0)
    assert (reflector.has_synced, reflector.is_served, reflector.is_forbidden) == (True, True, True)


@pytest.mark.parametrize("sends_event", [True, False])
def test_a_watch_that_breaks_after_it_succeeded_is_opened_again_soon(sends_event):
    """A load balancer may close each connection after some idle seconds."""
    reflector, now = synced(), 0
    for number in range(8):
        assert isinstance(reflector.next_action(now), OpenWatch)
        now += 20 * SECOND
        if sends_event:
            reflector.watched(event("MODIFIED", pod("a", 20 + number)), now)
        else:
            reflector.stayed_open()
        reflector.failed(0, now, problem="the server closed it")
        assert reflector.next_action(now) == PauseUntil(now + 800_000_000)
        assert reflector.problem == ""
        now += 800_000_000


def test_a_watch_with_an_unusable_event_leads_to_a_list_even_if_it_stays_open():
    reflector = synced()
    for number in range(REFUSALS_MAX + 1):
        assert isinstance(reflector.next_action(100 * SECOND * number), OpenWatch)
        reflector.stayed_open()
        reflector.watched(b"<html>", 100 * SECOND * number)
    assert isinstance(reflector.next_action(1_000 * SECOND), ReadPage)


def test_a_problem_is_reported_from_the_second_failure_until_a_success():
    reflector = synced()
    reflector.failed(0, 0, problem="https://x: cannot connect")
    assert reflector.problem == ""
    reflector.failed(0, 0, problem="https://x: cannot connect")
    assert reflector.problem == "https://x: cannot connect"
    reflector.failed(500, 0)
    assert reflector.problem == "status 500"
    reflector.ended(0)
    assert reflector.problem == ""


@pytest.mark.parametrize(
    ("seconds", "problem"), [(30.0, "status 429 with Retry-After: 30"), (1.0, "")]
)
def test_a_long_pause_that_the_server_demands_is_a_problem(seconds, problem):
    reflector = synced()
    reflector.next_action(0)
    reflector.failed(429, 0, seconds)
    assert reflector.problem == problem
    assert reflector.next_action(0) == PauseUntil(int(max(seconds, 0.8) * SECOND))


def test_a_problem_ends_when_a_watch_stays_open():
    """A resource that does not change sends no event for a minute."""
    reflector = synced()
    for _ in range(2):
        reflector.failed(403, 0)
    assert (reflector.problem, reflector.refusal) == ("status 403", 403)
    reflector.stayed_open()
    assert (reflector.problem, reflector.refusal) == ("", 0)


def test_a_response_that_is_not_a_list_is_a_problem():
    reflector = listing()
    for _ in range(2):
        reflector.next_action(reflector._not_before)
        reflector.listed(b"<html>", 0)
    assert reflector.problem == "the answer is not a list of Kubernetes objects"
    reflector.next_action(reflector._not_before)
    reflector.listed(page(), 0)
    assert reflector.problem == ""


def test_after_an_expired_version_a_list_yields_the_differences():
    reflector = synced()
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "status": "Failure"}
    assert reflector.watched(event("ERROR", gone), 0) is None
    now = reflector.next_action(0).instant
    body = page(pod("b", 2), pod("c", 30), version="30")
    assert listed(reflector, body, now) == ["+c", "-a"]
    assert sorted(reflector.objects) == ["d/b", "d/c"]


def test_a_list_older_than_the_known_objects_is_ignored():
    reflector = synced()
    reflector.watched(event("ADDED", pod("c", 20)), 0)
    reflector.failed(410, 0)
    now = 0
    for _ in range(STALE_LISTS_MAX):
        now = reflector.next_action(now).instant
        assert listed(reflector, page(pod("a", 1), version="15"), now) == []
    assert sorted(reflector.objects) == ["d/a", "d/b", "d/c"]


def test_older_lists_of_a_restored_server_are_accepted_after_some_retries():
    reflector = synced()
    reflector.watched(event("MODIFIED", pod("a", 20)), 0)
    reflector.failed(410, 0)
    now, found = 0, []
    for _ in range(STALE_LISTS_MAX + 1):
        now = reflector.next_action(now).instant
        found = listed(reflector, page(pod("a", 5), version="6"), now)
    assert found == ["+a", "-b"]
    assert reflector.next_action(now).query["resourceVersion"] == "6"


def test_older_lists_of_a_restored_server_are_accepted_within_a_minute():
    """While the backup is restored, the server cannot be reached, so the pauses become long."""
    reflector, now = synced(), 0
    reflector.watched(event("MODIFIED", pod("a", 20)), 0)
    for _ in range(10):
        reflector.failed(0, now)
        now = reflector.next_action(now).instant
    began = now
    reflector.failed(504, now)
    for _ in range(STALE_LISTS_MAX + 1):
        now = reflector.next_action(now).instant
        listed(reflector, page(pod("a", 5), version="6"), now)
    assert reflector.problem == ""
    assert now - began < 60 * SECOND


def test_an_older_list_of_several_pages_is_no_list_without_end():
    """The first page is requested again, so the server returns the same continue token again."""
    reflector, now = synced(), 0
    reflector.watched(event("MODIFIED", pod("a", 20)), 0)
    reflector.failed(410, now)
    for _ in range(STALE_LISTS_MAX):
        now += 100 * SECOND
        listed(reflector, page(pod("a", 5), version="6", then="t"), now)
    assert reflector.problem == "the list is older than the known objects"
    now += 100 * SECOND
    assert listed(reflector, page(pod("a", 5), version="6", then="t"), now) == ["+a"]
    assert listed(reflector, page(pod("b", 6), version="6"), now) == ["+b"]
    assert isinstance(reflector.next_action(now), OpenWatch)


@pytest.mark.parametrize("code", [404, 403])
def test_a_resource_that_cannot_be_read_has_no_objects(code):
    reflector = make()
    reflector.next_action(0)
    reflector.failed(code, 0)
    assert reflector.has_synced
    assert (reflector.is_served, reflector.is_forbidden) == (code != 404, code == 403)
    assert isinstance(reflector.next_action(0), PauseUntil)


@pytest.mark.parametrize("code", [404, 403])
def test_a_refusal_of_a_listed_resource_is_a_temporary_failure(code):
    reflector = synced()
    reflector.failed(code, 0)
    assert reflector.refusal == code
    assert (reflector.is_served, reflector.is_forbidden) == (True, False)
    assert set(reflector.objects) == {"d/a", "d/b"}
    pause = reflector.next_action(0)
    assert pause.instant < 2 * SECOND
    action = reflector.next_action(pause.instant)
    assert action.query["resourceVersion"] == "10"
    assert summary(reflector.watched(event("MODIFIED", pod("a", 11)), 0)) == ["+a"]
    assert reflector.refusal == 0


def test_nulls_and_malformed_objects_do_not_stop_a_list():
    reflector = listing()
    odd = pod("odd", 1)
    odd["spec"] = {"nodeName": 7}
    null = pod("null", 1, creationTimestamp=None)
    assert listed(reflector, page(odd, null, pod("a", 1))) == ["+null", "+a"]
    assert reflector.undecodable == {"d/odd": "spec.nodeName: Expected `str`, got `int`"}


@pytest.mark.parametrize("line", [b'{"type": "ADDED", "obj', b"[]", b"\xff"])
def test_a_malformed_line_ends_the_watch(line):
    assert synced().watched(line, 0) is None


def undecodable(name, version=1):
    odd = pod(name, version)
    odd["spec"] = {"nodeName": 7}
    return odd


def test_an_object_that_can_no_longer_be_decoded_keeps_its_known_version():
    reflector = listing()
    listed(reflector, page(pod("a", 1), pod("b", 1)))
    assert reflector.watched(event("MODIFIED", undecodable("a", 11)), 0) == []
    assert "d/a" in reflector.undecodable
    reflector.failed(410, 0)
    assert listed(reflector, page(undecodable("a", 11), version="12"), 40 * SECOND) == ["-b"]
    assert set(reflector.objects) == {"d/a"}


def test_an_object_that_can_be_decoded_again_is_no_longer_undecodable():
    reflector = listing()
    listed(reflector, page(undecodable("a"), undecodable("b")))
    assert summary(reflector.watched(event("MODIFIED", pod("a", 11)), 0)) == ["+a"]
    assert list(reflector.undecodable) == ["d/b"]
    reflector.failed(410, 0)
    listed(reflector, page(pod("a", 11), version="12"), 40 * SECOND)
    assert reflector.undecodable == {}


def test_an_undecodable_object_can_be_deleted():
    """Otherwise, a pod would use resources of its node forever."""
    reflector = listing()
    listed(reflector, page(pod("a", 1)))
    reflector.watched(event("MODIFIED", undecodable("a", 11)), 0)
    assert summary(reflector.watched(event("DELETED", undecodable("a", 12)), 0)) == ["-a"]
    assert (reflector.objects, reflector.undecodable) == ({}, {})


@pytest.mark.parametrize("odd", ["text", 5, None, [], {"metadata": []}, {"metadata": {"name": 1}}])
def test_an_event_without_a_valid_object_does_not_end_a_watch(odd):
    reflector = listing()
    listed(reflector, page())
    for kind in ("ADDED", "BOOKMARK", "DELETED"):
        assert reflector.watched(event(kind, odd), 0) == []
    assert summary(reflector.watched(event("ADDED", pod("a", 11)), 0)) == ["+a"]


def bookmark(version, *, ends_list=False):
    annotations = {"k8s.io/initial-events-end": "true"} if ends_list else {}
    return event(
        "BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": annotations}}
    )


def test_a_streamed_list_of_a_restored_server_replaces_the_known_objects():
    """Objects return to older versions. None is removed before the list is complete."""
    reflector, now = make(), 0
    reflector.next_action(now)
    for name, version in (("kept", 900), ("gone", 5)):
        reflector.watched(event("ADDED", pod(name, version)), now)
    reflector.watched(bookmark(1_000, ends_list=True), now)
    reflector.failed(410, now)
    now += 60 * SECOND
    assert isinstance(reflector.next_action(now), OpenWatch)
    assert reflector.watched(event("ADDED", pod("kept", 450)), now) == []
    assert reflector.watched(bookmark(500, ends_list=True), now) is None
    for number in range(STALE_LISTS_MAX):
        now += 120 * SECOND
        assert listed(reflector, page(pod("kept", 450), version="500"), now) == [], number
    assert reflector.problem == "the list is older than the known objects"
    now += 120 * SECOND
    assert listed(reflector, page(pod("kept", 450), version="500"), now) == ["+kept", "-gone"]
    assert reflector.objects["d/kept"].metadata.resource_version == "450"
    assert reflector.problem == ""


def test_bookmarks_older_than_the_watch_lead_to_a_list():
    """A restored server shows no change until its version has passed that of the watch."""
    reflector = listing()
    listed(reflector, page(pod("a", 900), version="1000"))
    assert reflector.watched(bookmark(500), 0) == []
    assert reflector.watched(bookmark(1_001), 0) == []  # the server lagged behind
    assert reflector.watched(bookmark(1_001), 0) == []
    assert reflector.watched(bookmark(500), 0) == []
    assert reflector.watched(bookmark(510), 0) is None
    assert isinstance(reflector.next_action(60 * SECOND), ReadPage)


@pytest.mark.parametrize(
    ("code", "relists"), [(400, True), (500, True), (504, True), (0, False), (429, False)]
)
def test_a_watch_that_is_always_refused_leads_to_a_list(code, relists):
    """Examples are "Too large resource version", or versions of another form after a restore."""
    reflector, now = listing(), 0
    listed(reflector, page(pod("a", 1)))
    for _ in range(4):
        now += 120 * SECOND
        assert isinstance(reflector.next_action(now), OpenWatch)
        reflector.failed(code, now)
    now += 120 * SECOND
    assert isinstance(reflector.next_action(now), ReadPage) == relists


def test_a_list_whose_pages_expire_is_read_without_pages():
    reflector = listing()
    listed(reflector, page(pod("a", 1), then="t"))
    reflector.next_action(0)
    reflector.failed(410, 0)
    assert reflector.next_action(60 * SECOND).query == {}
    reflector.failed(0, 60 * SECOND, problem="the answer has more than 256 MiB", repeats=True)
    assert reflector.next_action(120 * SECOND).query == {"limit": "250"}
    reflector.failed(410, 120 * SECOND)
    assert listed(reflector, page(pod("a", 1), pod("b", 1)), 180 * SECOND) == ["+b"]
    assert reflector.has_synced


@pytest.mark.parametrize("code", [0, 503])
def test_a_list_without_pages_that_fails_for_the_moment_is_requested_again(code):
    """If it always fails, it may take too long, so the list is read in pages again."""
    reflector, queries = listing(), []
    listed(reflector, page(pod("a", 1), then="t"))
    reflector.failed(410, 0)
    for number in range(1, REFUSALS_MAX + 2):
        queries.append(reflector.next_action(100 * SECOND * number).query)
        reflector.failed(code, 100 * SECOND * number)
    assert queries == [{}] * REFUSALS_MAX + [{"limit": "500"}]


@pytest.mark.parametrize(
    ("code", "resumes"), [(0, True), (408, True), (429, True), (503, True), (400, False)]
)
def test_a_page_that_fails_for_the_moment_is_requested_again(code, resumes):
    """A list of many pages must end on a bad connection, too."""
    reflector = listing()
    listed(reflector, page(pod("a", 1), then="t"))
    reflector.failed(code, 0)
    query = reflector.next_action(60 * SECOND).query
    assert query == {"limit": "500"} | ({"continue": "t"} if resumes else {})
    pods = [pod("b", 2)] if resumes else [pod("a", 1), pod("b", 2)]
    assert listed(reflector, page(*pods), 60 * SECOND) == ["+b"]
    assert sorted(one.metadata.name for one in reflector.objects.values()) == ["a", "b"]


@pytest.mark.parametrize(("code", "restarts"), [(500, True), (504, True), (503, False), (0, False)])
def test_a_list_whose_token_the_server_does_not_know_starts_again(code, restarts):
    """A server that was restored from a backup reports a version in the future with 500 or 504."""
    reflector = listing()
    listed(reflector, page(pod("a", 1), then="t"))
    for number in range(REFUSALS_MAX + 1):
        now = 100 * SECOND * (number + 1)
        assert reflector.next_action(now).query["continue"] == "t"
        reflector.failed(code, now)
    assert ("continue" not in reflector.next_action(1_000 * SECOND).query) is restarts


def test_each_page_resets_the_pause():
    reflector, now = listing(), 0
    listed(reflector, page(pod("a", 1), then="t1"))
    for number in range(2, 12):
        reflector.failed(503, now)
        pause = reflector.next_action(now)
        assert pause == PauseUntil(now + 800_000_000)
        now = pause.instant
        listed(reflector, page(pod(f"p{number}", number), then=f"t{number}"), now)


@pytest.mark.parametrize(
    "body", [b"{}", b'{"status": "ok"}', b'{"items": null, "metadata": {}}', page(version="")]
)
def test_other_json_does_not_count_as_an_empty_list(body):
    """Otherwise every known object would count as deleted."""
    reflector = synced()
    reflector.failed(410, 0)
    assert listed(reflector, body, 10 * SECOND) == []
    assert reflector.objects
    assert isinstance(reflector.next_action(10 * SECOND), PauseUntil)


def test_a_list_with_a_repeated_continue_token_is_read_without_pages():
    reflector = listing()
    listed(reflector, page(pod("a", 1), then="t"))
    listed(reflector, page(pod("b", 2), then="t"))
    assert isinstance(reflector.next_action(0), PauseUntil)
    assert reflector.next_action(60 * SECOND).query == {}
    listed(reflector, page(pod("a", 1), pod("b", 2), pod("c", 3)), 60 * SECOND)
    assert sorted(reflector.objects) == ["d/a", "d/b", "d/c"]
    assert reflector.has_synced


def test_a_server_that_always_repeats_a_continue_token_is_a_problem():
    reflector, problems = listing(), []
    for number in range(6):
        now = 100 * SECOND * number
        reflector.next_action(now)
        reflector.listed(page(pod("a", 1), then="t"), now)
        problems.append(reflector.problem)
    repeated = "the server repeats a continue token"
    assert problems == ["", "", "", repeated, repeated, repeated]
    reflector.next_action(1_000 * SECOND)
    reflector.failed(400, 1_000 * SECOND)
    listed(reflector, page(pod("a", 1)), 1_100 * SECOND)
    assert (reflector.has_synced, reflector.problem) == (True, "")


@pytest.mark.parametrize(
    ("body", "pages", "problem"),
    [
        ([page(pod("a", 1), then="t"), page(then="u")], 3, "the server repeats a continue token"),
        ([page(then=f"t{number}") for number in range(200)], 101, "the server repeats empty pages"),
    ],
    ids=["two tokens in turn", "empty pages"],
)
def test_a_list_without_end_is_a_problem(body, pages, problem):
    reflector, now = listing(), 0
    for _ in range(2):
        for number in range(pages):
            assert isinstance(reflector.next_action(now), ReadPage)
            assert reflector.problem == ""
            reflector.listed(body[number % len(body)], now)
        assert isinstance(reflector.next_action(now), PauseUntil)
        now += 100 * SECOND
    assert reflector.problem == problem


def test_watches_that_always_expire_are_a_problem_and_the_pauses_grow():
    """The lists succeed, so no request fails twice in a row."""
    reflector, now, problems, pauses = listing(), 0, [], []
    for number in range(4):
        listed(reflector, page(pod("a", 1), version=str(10 + number)), now)
        assert isinstance(reflector.next_action(now), OpenWatch)
        reflector.failed(410, now)
        problems.append(reflector.problem)
        pauses.append((reflector.next_action(now).instant - now) / SECOND)
        now = reflector.next_action(now).instant
    problem = "no watch can start at the resource version of the list"
    assert problems == ["", problem, problem, problem]
    assert pauses == [0.8, 1.6, 3.2, 6.4]
    listed(reflector, page(version="20"), now)
    assert reflector.problem == problem
    reflector.next_action(now)
    reflector.watched(event("ADDED", pod("b", 21)), now)
    reflector.ended(now)
    assert reflector.problem == ""
    reflector.failed(410, now)
    assert reflector.next_action(now) == PauseUntil(now + 800_000_000)


def test_a_list_that_the_server_always_divides_into_pages_is_completed():
    """The server need not return the complete list in one response."""
    reflector = listing()
    listed(reflector, page(pod("a", 1), then="t"))
    reflector.failed(410, 0)
    listed(reflector, page(pod("a", 1), then="u"), 60 * SECOND)
    assert reflector.next_action(60 * SECOND).query["continue"] == "u"
    listed(reflector, page(pod("b", 2)), 60 * SECOND)
    assert reflector.has_synced


ERROR = b'{"type": "ERROR", "object": {"kind": "Status", "code": %d, "message": "odd"}}'


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(ERROR % 0, id="an error without a code"),
        pytest.param(ERROR % 409, id="an error of another kind"),
        pytest.param(b"<html>", id="a line that is not an event"),
        pytest.param(None, id="a line that is too long"),
    ],
)
def test_a_watch_with_only_unusable_events_leads_to_a_list(line):
    """Later events of the resource would never be seen.

    upstream: client-go/tools/cache/reflector.go: watch, which lists after most errors
    """
    reflector, now = listing(), 0
    listed(reflector, page(pod("a", 1)))
    for _ in range(4):
        now += 120 * SECOND
        assert isinstance(reflector.next_action(now), OpenWatch)
        if line is None:
            reflector.failed(0, now, problem="a line is too long", repeats=True)
        else:
            assert reflector.watched(line, now) is None
    assert reflector.problem
    assert listed(reflector, page(pod("a", 1), pod("b", 11), version="12"), now + 120 * SECOND) == [
        "+b"
    ]
    assert reflector.problem == ""


def test_a_page_that_is_too_long_is_read_in_shorter_pages():
    """500 ResourceSlices with many devices may have more than the limit."""
    reflector, now, limits = listing(), 0, []
    for _ in range(11):
        now += 120 * SECOND
        limits.append(int(reflector.next_action(now).query["limit"]))
        reflector.failed(0, now, problem="the answer has more than 256 MiB", repeats=True)
    assert limits == [500, 250, 125, 62, 31, 15, 7, 3, 1, 1, 1]
    now += 120 * SECOND
    reflector.next_action(now)
    reflector.failed(0, now, problem="the server closed the connection")
    assert reflector.next_action(now + 120 * SECOND).query["limit"] == "1"


def test_a_version_of_thousands_of_digits_does_not_end_the_run():
    """Python refuses to convert such a number."""
    huge = "9" * 5_000
    reflector = listing()
    assert listed(reflector, page(pod("a", 1), version=huge)) == ["+a"]
    assert summary(reflector.watched(event("ADDED", pod("b", huge[1:])), 0)) == ["+b"]
    reflector.failed(410, 0)
    found = page(pod("a", 1), pod("b", huge[1:]), version=huge)
    assert listed(reflector, found, 60 * SECOND) == []
