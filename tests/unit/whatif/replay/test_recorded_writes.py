"""Patches, updates and deletions of an audit log at level Request, and unusual lines."""

from __future__ import annotations

import gzip
import json

import pytest

from fairlead.cli.main import run

CONTAINER = {"name": "m", "image": "i", "resources": {"requests": {"cpu": "1"}}}
NODE = {
    "metadata": {"name": "n", "labels": {"disk": "ssd", "old": "1"}},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}
POD = {
    "metadata": {"name": "p", "labels": {"app": "web"}},
    "spec": {"containers": [CONTAINER], "nodeSelector": {"disk": "ssd"}},
}


def event(verb, resource, body, second, subresource="", name="p"):
    namespace = "" if resource == "nodes" else "shop"
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Event",
        "level": "Request",
        "stage": "ResponseComplete",
        "auditID": f"{resource}-{second}",
        "verb": verb,
        "objectRef": {
            "resource": resource,
            "namespace": namespace,
            "name": "n" if resource == "nodes" else name,
            "subresource": subresource,
        },
        "responseStatus": {"code": 200},
        "requestObject": body,
        "stageTimestamp": f"2026-03-01T10:00:{second:02d}.000000Z",
    }


NODE_CREATED = event("create", "nodes", NODE, 0)
CREATED = event("create", "pods", POD, 1)
BOUND = event("create", "pods", {"target": {"name": "n"}}, 30, "binding")


@pytest.fixture
def replayed(tmp_path, capsys):
    """Returns (exit code, answer or line of error) for the lines or bytes of a log."""

    def replay(log, name="audit.log"):
        data = log if isinstance(log, bytes) else as_lines(log)
        (tmp_path / name).write_bytes(data)
        code = run(["replay", str(tmp_path / name), "-o", "json"])
        printed = capsys.readouterr()
        if code:
            assert printed.err.count("\n") == 1
            return code, printed.err.strip().removeprefix(f"fairlead: {tmp_path}/")
        return code, json.loads(printed.out)

    return replay


def as_lines(events):
    return "".join(json.dumps(one) + "\n" for one in events).encode()


def agreement(found):
    code, answer = found
    assert code == 0, answer
    return [
        (row["pod"], row["agreement"], row["reason"].partition(": ")[2].partition(". ")[0])
        for row in answer["pods"]
    ]


FITS = [("shop/p", "same", "")]
NO_SELECTED_NODE = "1 node(s) didn't match Pod's node affinity/selector"
FITS_NONE = [("shop/p", "unschedulable", NO_SELECTED_NODE)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (event("patch", "nodes", [{"op": "replace", "path": "/metadata",
               "value": {"name": "n", "labels": {"old": "1"}}}], 5), FITS_NONE),
        (event("patch", "nodes", [{"op": "replace", "path": "/metadata", "value": {}}], 5),
         FITS_NONE),
        (event("patch", "nodes", [{"op": "replace", "path": "", "value": NODE}], 5), FITS),
        (event("patch", "nodes", {"metadata": {"labels": {"disk": None}}}, 5), FITS_NONE),
        (event("patch", "nodes", {"metadata": {"labels": None}}, 5), FITS_NONE),
        (event("update", "nodes", {**NODE, "metadata": {"name": "n"}}, 5), FITS_NONE),
        (event("patch", "nodes", {"spec": {"taints": None}}, 5), FITS),
        (event("patch", "pods", {"spec": {"nodeSelector": {"disk": "hdd"}}}, 5), FITS_NONE),
        (event("patch", "pods", {"spec": {"nodeSelector": None}}, 5), FITS),
        (event("patch", "pods", {"status": None}, 5, "status"), FITS),
        (event("patch", "pods", [{"op": "replace", "path": "/metadata",
               "value": {"name": "other", "namespace": "other"}}], 5), FITS),
    ],
)  # fmt: skip
def test_a_write_changes_the_fields_that_it_names(replayed, change, expected):
    assert agreement(replayed([NODE_CREATED, CREATED, change, BOUND])) == expected


@pytest.mark.parametrize(
    ("write", "line"),
    [
        (event("patch", "pods", [{"op": "replace", "path": "/metadata", "value": "x"}], 5),
         "metadata: is not an object after the patch"),
        (event("patch", "pods", {"metadata": "x"}, 5),
         "metadata: is not an object after the patch"),
        (event("patch", "pods", [{"op": "replace", "path": "", "value": [1]}], 5),
         "the patch does not fit the object before it"),
        (event("patch", "pods", [{"op": "remove", "path": "/spec/volumes"}], 5),
         "the patch does not fit the object before it"),
        (event("patch", "pods", [{"op": "remove", "path": "/spec"}], 5),
         "Pod shop/p: spec: is required"),
        (event("patch", "pods", {"spec": None}, 5), "Pod shop/p: spec: is required"),
        (event("patch", "pods", {"$patch": "delete"}, 5), "Pod shop/p: spec: is required"),
        (event("update", "pods", [1], 5), "is not an object after the update"),
        (event("update", "pods", {"metadata": {"name": "p"}}, 5), "Pod shop/p: spec: is required"),
        (event("create", "pods", {"metadata": {"name": "q"}}, 5, name="q"),
         "Pod shop/q: spec: is required"),
        (event("update", "pods", {"status": "x"}, 5, "status"), "Pod shop/p: status: Expected"),
    ],
)  # fmt: skip
def test_a_write_that_no_server_accepts_is_refused_by_its_line(replayed, write, line):
    code, message = replayed([NODE_CREATED, CREATED, write, BOUND])
    assert code == 2
    assert message.startswith(f"audit.log: line 3: {line}")


@pytest.mark.parametrize("verb", ["patch", "update"])
def test_an_apply_patch_or_an_update_can_create_an_object(replayed, verb):
    """Server-side apply creates absent objects; the status code states this."""
    created = event(verb, "pods", POD, 1)
    changed = replayed([NODE_CREATED, created, BOUND])
    assert any("unknown objects" in note for note in changed[1]["notes"])
    created["responseStatus"] = {"code": 201}
    assert agreement(replayed([NODE_CREATED, created, BOUND])) == FITS


def test_a_grace_period_without_end_is_refused(replayed):
    deletion = event("delete", "pods", {"gracePeriodSeconds": 10**30}, 40)
    code, message = replayed([NODE_CREATED, CREATED, BOUND, deletion])
    assert (code, message.partition(": the")[0]) == (2, "audit.log: line 4: gracePeriodSeconds")
    negative = event("delete", "pods", {"gracePeriodSeconds": -(10**15)}, 40)
    assert agreement(replayed([NODE_CREATED, CREATED, BOUND, negative])) == FITS


def test_stages_before_the_last_and_repeated_lines_are_skipped(replayed):
    received = [{**one, "stage": "RequestReceived"} for one in (NODE_CREATED, CREATED, BOUND)]
    unnamed = event("create", "pods", {**POD, "metadata": {"generateName": "p"}}, 1, name="")
    log = [*received, NODE_CREATED, unnamed, unnamed, BOUND, BOUND]
    other = event("create", "pods", {"target": {"name": "n"}}, 31, "binding", name="pq")
    code, answer = replayed([*log, other])
    assert code == 0
    assert [row["pod"] for row in answer["pods"]] == ["shop/p"]
    assert any("such as shop/pq" in note for note in answer["notes"])


def test_a_log_in_any_order_compressed_or_with_a_byte_order_mark(replayed):
    data = as_lines([BOUND, CREATED, NODE_CREATED])
    assert agreement(replayed(data)) == FITS
    assert agreement(replayed(gzip.compress(data), "audit.log.gz")) == FITS
    assert agreement(replayed(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))) == FITS


def test_an_incomplete_last_line_is_left_out_with_a_note(replayed):
    """kube-apiserver was still writing the line when the log was copied."""
    data = as_lines([NODE_CREATED, CREATED, BOUND, event("delete", "pods", None, 40)])
    found = replayed(data[:-20])
    assert agreement(found) == FITS
    assert any(
        "line 4, the last one, is incomplete and is left out" in n for n in found[1]["notes"]
    )


def test_a_log_that_is_cut_short_elsewhere_is_refused(replayed):
    data = as_lines([NODE_CREATED, CREATED, BOUND])
    expected = "audit.log: line 3: is not an audit event: Input data was truncated"
    assert replayed(data[:-20] + b"\n") == (2, expected)
    code, message = replayed(gzip.compress(data)[:-20], "audit.log.gz")
    assert (code, message) == (2, "audit.log.gz: is cut short: the gzip data has no end")


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        (b'"disk"', b'"\xff"', "line 1: requestObject: is not JSON: 'utf-8' codec can't decode"),
        (b'"ssd"', b"[" * 100_000 + b"]" * 100_000, "line 1: is nested too deeply"),
        (b'"ssd"', b"[" * 900 + b"]" * 900, "line 1: "),
    ],
    ids=["not UTF-8", "nested", "nested less"],
)
def test_a_body_that_cannot_be_read_is_refused_by_its_line(replayed, before, after, problem):
    data = as_lines([NODE_CREATED, CREATED, BOUND]).replace(before, after, 1)
    code, message = replayed(data)
    assert code == 2
    assert message.startswith(f"audit.log: {problem}")


def test_a_response_about_another_object_is_refused(replayed):
    for key, value in (("name", "q"), ("namespace", "other")):
        meta = {"name": "p", "namespace": "shop", "creationTimestamp": "2026-03-01T10:00:00Z"}
        deleted = event("delete", "pods", None, 20)
        deleted["responseObject"] = {
            **POD, "apiVersion": "v1", "kind": "Pod", "metadata": meta | {key: value}
        }  # fmt: skip
        expected = {"name": "p", "namespace": "shop"}[key]
        problem = f"is {value!r}, but objectRef.{key} is {expected!r}"
        line = f"audit.log: line 3: responseObject.metadata.{key}: {problem}"
        assert replayed([NODE_CREATED, CREATED, deleted, BOUND]) == (2, line)


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        ({"metadata": 1}, "metadata: expected object, got int"),
        ({"metadata": None}, "metadata: expected object, got null"),
        ({}, ": object missing required field metadata"),
        ({"metadata": {"name": 1}}, "metadata.name: expected str, got int"),
        ({"metadata": {"name": "n", "namespace": []}}, "metadata.namespace: expected str, got"),
    ],
)
def test_a_response_with_malformed_metadata_is_refused(replayed, response, problem):
    """Without its response, the Node would be missing, and the answer would not say why."""
    created = event("create", "nodes", None, 0)
    created["responseObject"] = {"apiVersion": "v1", "kind": "Node", **response}
    code, message = replayed([created, CREATED, BOUND])
    assert code == 2
    field = f".{problem}" if problem.startswith("metadata") else problem
    assert message.startswith(f"audit.log: line 1: responseObject{field}")
    deleted = event("deletecollection", "nodes", None, 20, name="")
    deleted["responseObject"] = {"kind": "NodeList", "items": [response]}
    code, message = replayed([NODE_CREATED, CREATED, BOUND, deleted])
    assert code == 2
    assert message.startswith(f"audit.log: line 4: responseObject.items[0]{field}")


def test_a_list_without_items_deletes_nothing(replayed):
    deleted = event("deletecollection", "pods", None, 20, name="")
    deleted["responseObject"] = {"kind": "PodList", "items": 5}
    assert agreement(replayed([NODE_CREATED, CREATED, deleted, BOUND])) == FITS


def test_blank_lines_count_as_lines(replayed):
    data = b"\n \r\n" * 1_000 + as_lines([NODE_CREATED, CREATED]) + b"\n\n{\n"
    code, message = replayed(data)
    assert (code, message.partition(": is")[0]) == (2, "audit.log: line 2005")


def test_a_pod_with_the_name_of_an_evicted_pod_is_compared(replayed):
    """The StatefulSet of an evicted pod creates it again; the eviction's response has no version.

    The resourceVersion of the evicted pod then comes from the store of the replay, which counts its
    own writes, and must not be compared with the versions in the log.
    """

    def created(second, version):
        meta = {**POD["metadata"], "namespace": "shop", "resourceVersion": version}
        pod = {"apiVersion": "v1", "kind": "Pod", **POD, "metadata": meta}
        return {**event("create", "pods", POD, second), "responseObject": pod}

    evicted = event("create", "pods", {"kind": "Eviction"}, 32, "eviction")
    removed = event("delete", "pods", {"gracePeriodSeconds": 0}, 33)
    again = event("create", "pods", {"target": {"name": "n"}}, 35, "binding")
    log = [NODE_CREATED, created(1, "1"), BOUND, evicted, removed, created(34, "2"), again]
    assert agreement(replayed(log)) == [*FITS, *FITS]


@pytest.mark.parametrize(("cpu", "agreement"), [("4", "infeasible"), ("0", "unschedulable")])
def test_placements_on_unknown_nodes_are_stated_below_the_verdict(replayed, cpu, agreement):
    """Such a placement is unschedulable if no known node has room for the pod."""
    node = {**NODE, "status": {"allocatable": {**NODE["status"]["allocatable"], "cpu": cpu}}}
    elsewhere = event("create", "pods", {"target": {"name": "gone"}}, 30, "binding")
    code, answer = replayed([event("create", "nodes", node, 0), CREATED, elsewhere])
    assert (code, [row["agreement"] for row in answer["pods"]]) == (0, [agreement])
    assert answer["findings"] == [
        (
            "1 placement is on nodes of which the history contains no Node object at that time, "
            "such as gone. They count as infeasible or unschedulable. To compare them, name a dump "
            "with these nodes: --snapshot DUMP."
        )
    ]
