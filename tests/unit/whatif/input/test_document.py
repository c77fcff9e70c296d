"""Sources of input: files, directories and standard input; and refusals of unreadable input."""

from __future__ import annotations

import io
import json
import os

import pytest

from fairlead.whatif.input.document import read, read_listings, read_one
from fairlead.whatif.input.error import InputError


def refusal(call):
    with pytest.raises(InputError) as refused:
        call()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_directory_with_a_link_to_no_file_is_refused(tmp_path):
    (tmp_path / "a.yaml").write_text("a: 1")
    (tmp_path / "b.yaml").symlink_to(tmp_path / "absent")
    said = f"{tmp_path / 'b.yaml'}: cannot be read: No such file or directory"
    assert refusal(lambda: read(str(tmp_path))) == said


def test_a_directory_may_contain_the_lock_of_an_editor(tmp_path):
    (tmp_path / "a.yaml").write_text("a: 1")
    (tmp_path / ".#a.yaml").symlink_to("me@host.1:2")
    assert [document.value for document in read(str(tmp_path))] == [{"a": 1}]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every directory")
def test_a_directory_below_that_cannot_be_listed_is_refused(tmp_path):
    (tmp_path / "a.yaml").write_text("a: 1")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    assert refusal(lambda: read(str(tmp_path))) == f"{closed}: cannot be read: Permission denied"


def test_a_directory_is_read_recursively_in_sorted_order(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.yaml").write_text("number: 2\n---\nnumber: 3")
    (tmp_path / "a.json").write_text('{"number": 1}')
    (tmp_path / "sub" / "c.yml").write_text("number: 4")
    (tmp_path / "notes.txt").write_text("no: object")
    found = read(str(tmp_path))
    assert [document.value["number"] for document in found] == [1, 2, 3, 4]
    assert found[0].source == str(tmp_path / "a.json")


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": [1, "x"]}',
        b"{a: [1, x]}",
        b"a: [1, x]",
        b"\xef\xbb\xbfa: [1, x]",
        "a: [1, x]".encode("utf-16"),
        '{"a": [1, "x"]}'.encode("utf-16"),
        b"# a comment\n---\na: [1, x]\n---\n",
    ],
)
def test_json_and_yaml_are_read_from_standard_input_in_common_encodings(data):
    [document] = read("-", io.BytesIO(data))
    assert document.value == {"a": [1, "x"]}
    assert document.source == "stdin"


@pytest.mark.parametrize("reader", [read, read_listings])
@pytest.mark.parametrize("end", ["\n", " \r\n\r\n ", "\n\n"])
def test_json_objects_can_follow_each_other_by_lines(reader, end):
    text = end.join(['{"a": "} {"}', '{\n "a": [{"b": 1},\n {"b": 2}\n]}', '{"a": 3}', ""])
    found = reader("-", io.BytesIO(text.encode()))
    assert [one.value["a"] for one in found] == ["} {", [{"b": 1}, {"b": 2}], 3]
    assert [one.place for one in found] == ["document 1", "document 2", "document 3"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"a": 1}\n{"a": }\n', "stdin: document 2 is not JSON: "),
        (b'{"a": 1}\n{"a": 1, "a": 2}\n', "stdin: the key 'a' is given twice"),
        (
            b'{"a": 1}\n{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}",
            "stdin: document 2 is nested too deeply",
        ),
        (b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}", "stdin: is nested too deeply"),
        (b"", "stdin: is empty"),
        (b" \n\t", "stdin: is empty"),
        (b"# nothing\n", "stdin: contains only comments"),
        (b"\x00\x01\x02", "stdin: is not text"),
        (b"\xff\xd8\xff\xe0", "stdin: is not text: byte 0"),
        (b"\x1f\x8b\x08", "stdin: is cut short: the gzip data has no end"),
        (b'{"a": 1', "stdin: is not JSON: "),
        (
            b'{"a": 1}\n==== START logs for container c of pod d/p ====\n{"x": 1}\n==== END',
            "kubectl cluster-info dump prints logs, too: use its option --output-directory DIR",
        ),
        (b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}", "stdin: is nested too deeply"),
        (b'{"a": NaN}', "stdin: is not JSON: "),
        (b"a: b: c", "stdin: is not YAML: line 1: "),
        (b"NAME\nweb\n", "stdin: is a table of kubectl; add -o yaml to the kubectl command"),
        (b"NAME   TARGETS\nweb    cpu: 50%/80%\n", "stdin: is a table of kubectl; add -o yaml"),
        (b"LAST SEEN   TYPE\n5m          Normal\n", "stdin: is a table of kubectl; add -o yaml"),
        (b"NAME A: b: c", "stdin: is not YAML: line 1: "),
        (b"a: {{ .Values.b }}", "; if it is a template of a Helm chart, use the output of helm"),
    ],
)
def test_unreadable_input_is_refused_in_one_line(data, problem):
    assert problem in refusal(lambda: read("-", io.BytesIO(data)))


def test_empty_files_in_a_directory_are_skipped_and_named(tmp_path):
    """kubectl leaves an empty file behind if the cluster lacks a kind."""
    (tmp_path / "a.json").write_text("")
    (tmp_path / "b.json").write_text('{"a": 1}')
    (tmp_path / "c.yaml").write_text(" \n\t\n")
    empty: list[str] = []
    found = read_listings(str(tmp_path), on_empty=empty.append)
    assert [one.value for one in found] == [{"a": 1}]
    assert empty == [str(tmp_path / "a.json"), str(tmp_path / "c.yaml")]


def test_files_without_an_object_are_skipped_beside_other_files(tmp_path):
    (tmp_path / "a.yaml").write_text("# apiVersion: v1\n---\n")
    (tmp_path / "b.yaml").write_text("")
    assert refusal(lambda: read(str(tmp_path))).endswith(
        "a.yaml: contains only comments or empty documents"
    )
    (tmp_path / "c.yaml").write_text("a: 1")
    assert [one.value for one in read(str(tmp_path))] == [{"a": 1}]
    empty: list[str] = []
    assert [one.value for one in read_listings(str(tmp_path), on_empty=empty.append)] == [{"a": 1}]
    assert empty == [str(tmp_path / "b.yaml")]


def test_an_empty_file_is_an_error_by_its_name_or_without_other_files(tmp_path):
    file = tmp_path / "a.json"
    file.write_text("\n")
    (tmp_path / "b.json").write_text("")
    for path in (file, tmp_path):
        assert refusal(lambda path=path: read_listings(str(path))) == f"{file}: is empty"


def test_missing_files_and_empty_directories_are_refused_by_name(tmp_path):
    missing = str(tmp_path / "no.yaml")
    assert refusal(lambda: read(missing)) == f"{missing}: cannot be read: No such file or directory"
    assert "directory without a .yaml" in refusal(lambda: read(str(tmp_path)))
    assert "is a directory" in refusal(lambda: read_one(str(tmp_path)))
    assert "is not a file name" in refusal(lambda: read("a\0b"))


def test_a_json_file_is_not_read_as_yaml(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("a: 1")
    assert "is not JSON" in refusal(lambda: read(str(path)))


def test_several_documents_are_refused_where_one_is_expected(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\n---\nb: 2")
    assert "contains 2 documents; expected one" in refusal(lambda: read_one(str(path)))


@pytest.mark.parametrize("share", [0, 0.3, 1])
def test_the_memory_of_a_mapped_listing_can_be_released(tmp_path, share):
    path = tmp_path / "pods.json"
    items = [{"kind": "Pod", "number": number} for number in range(1000)]
    path.write_text(json.dumps({"kind": "List", "items": items}))
    (document,) = read_listings(str(path))
    assert document.listing.mapped is not None
    document.listing.release(share)
    assert [json.loads(bytes(one)) for one in document.listing.items] == items


CONTAINERS = '"spec": {"containers": [{"name": "a"}, {"image": "i", "image": "j"}]}'
POD = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, %s}'


@pytest.mark.parametrize("reader", [read, read_listings])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ('{"a": [{"b": 1, "c": 2, "b": 3}]}', "a[0]: the key 'b' is given twice"),
        ('{"a": {"b": 1, "b": 2}, "a": 3}', "the key 'a' is given twice"),
        (POD % CONTAINERS, "Pod n/p: spec.containers[1]: the key 'image' is given twice"),
        (
            f'{{"kind": "List", "items": [{POD % CONTAINERS}]}}',
            "Pod n/p: spec.containers[1]: the key 'image' is given twice",
        ),
        ('{"metadata": {"name": "p"}, "kind": "Pod", "kind": "Node"}', "Node p: the key 'kind' is"),
    ],
)
def test_a_repeated_key_in_json_is_refused(tmp_path, reader, text, said):
    path = tmp_path / "a.json"
    path.write_text(text)
    assert refusal(lambda: reader(str(path))).startswith(f"{path}: {said}")


def test_a_large_json_file_is_not_searched_for_repeated_keys(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": 1, "a": 2, "b": "%s"}' % ("x" * (1 << 20)))
    assert read_one(str(path)).value["a"] == 2


def test_long_numbers_do_not_stop_the_search_for_repeated_keys(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": 1e5, "b": %s}' % ("9" * 40))
    assert read_one(str(path)).value["a"] == 1e5
