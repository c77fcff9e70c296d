"""The line of a field in a file, for error messages."""

from __future__ import annotations

import gzip

import pytest

from fairlead.whatif.input.document import Document, read_one
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.field_line import line_of, with_lines

YAML = """\
# a comment
groups:
- name: a
  labels: {pool: a}
- name: b
  labels:
    pool: b
    zone: z
flags: {x: 1}
"""
JSON = '{"groups": [\n\t{"name": "a"},\n\t{"name": "b",\n\t "labels": {}}]}'


@pytest.mark.parametrize(
    ("text", "field", "line"),
    [
        (YAML, "groups", 2),
        (YAML, "groups[0]", 3),
        (YAML, "groups[0].labels.pool", 4),
        (YAML, "groups[1].labels.zone", 8),
        (YAML, "flags.x", 9),
        pytest.param(YAML, "groups[1].labels[zone]", 8, id="a key"),
        pytest.param(YAML, "groups[1].max", 5, id="a missing field"),
        pytest.param(YAML, "groups[1].labels[...]", 6, id="a value of any key"),
        pytest.param(YAML, "groups[7].name", 2, id="a missing item"),
        (JSON, "groups[1].labels", 4),
        pytest.param("{", "groups", 0, id="not YAML"),
        pytest.param("", "groups", 0, id="not a text file"),
    ],
)
def test_a_field_has_a_line(text, field, line):
    assert line_of(Document("f", None, text=text.encode()), field) == line


def test_errors_name_the_line_in_a_compressed_file_too(tmp_path):
    path = tmp_path / "f.yaml.gz"
    path.write_bytes(gzip.compress(YAML.encode()))
    document = read_one(str(path))
    problem = InputError(document.source, "is bad", field="groups[1].name")
    with (
        pytest.raises(InputError, match=r"f.yaml.gz: line 5: groups\[1\].name: is bad"),
        with_lines(document),
    ):
        raise problem


def test_a_field_that_the_source_names_has_a_line_too():
    document = Document("f", None, text=YAML.encode())
    with (
        pytest.raises(InputError, match=r"f: line 5: groups\[1\].name: is bad"),
        with_lines(document),
    ):
        raise InputError("f: groups[1].name", "is bad")


@pytest.mark.parametrize(
    "error", [InputError("f", "is bad"), InputError("other", "is bad", field="groups")]
)
def test_errors_without_a_known_line_are_unchanged(error):
    with pytest.raises(InputError) as raised, with_lines(Document("f", None, text=YAML.encode())):
        raise error
    assert raised.value is error
