"""Finds the line of a field in a YAML or JSON file, for error messages.

After an error, PyYAML parses the text of the document (YAML or JSON) again and reports the position
of each value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import yaml

from fairlead.whatif.input.document import Document, decode_text, read_one
from fairlead.whatif.input.error import InputError

_FIELD: Final = re.compile(r"(?:[^\s:\[]|\[[^\]]*\])+")
_STEP: Final = re.compile(r"\[(\d+)\]|\[([^\]]*)\]|([^.\[]+)")  # (an index, a key, a field)


@contextmanager
def with_lines(document: Document) -> Iterator[None]:
    """Add the line number to an InputError about a field of `document` in the `with` block.

    Example: `groups.yaml: node-groups[0].min: …` becomes `groups.yaml: line 3: node-groups[0].min:
    …`.
    """
    try:
        yield
    except InputError as cause:
        source, field = cause.source, cause.field
        prefix = f"{document.source}: "
        if not field and source.startswith(prefix):  # `groups.yaml: node-groups[0].min`
            source, field = document.source, source.removeprefix(prefix)
        is_here = source == document.source and not cause.object_name
        line = line_of(document, field) if is_here and _FIELD.fullmatch(field) else 0
        if not line:
            raise
        raise InputError(
            document.source, cause.problem, object_name=f"line {line}", field=field
        ) from None


@contextmanager
def with_lines_of(path: str) -> Iterator[None]:
    """Add line numbers to errors about fields of the file `path`.

    Errors about standard input do not change, because it cannot be read again.
    """
    try:
        yield
    except InputError as cause:
        if path == "-":
            raise
        try:
            document = read_one(path)
        except InputError:
            raise cause from None
        with with_lines(document):
            raise cause from None


def line_of(document: Document, field: str) -> int:
    """Return the line number of `field`, a path such as `node-groups[0].min`; the first line is 1.

    For a missing field, return the line of the nearest enclosing field. Return 0 if the text of
    `document` is unknown, or is JSON that is not valid YAML.
    """
    try:
        text = decode_text(document.source, bytes(document.text))
        root = next(iter(yaml.compose_all(text, Loader=yaml.CSafeLoader)))
    except (InputError, yaml.YAMLError, StopIteration):
        return 0
    return _line(root, (int(n) if n else key or name for n, key, name in _STEP.findall(field)))


def _line(node: yaml.Node, steps: Iterable[int | str]) -> int:
    line = node.start_mark.line
    for step in steps:
        match node, step:
            case yaml.MappingNode(value=pairs), str():
                found = [pair for pair in pairs if pair[0].value == step]
                if not found:
                    break
                key, node = found[-1]
                line = key.start_mark.line
            case yaml.SequenceNode(value=items), int() if step < len(items):
                node = items[step]
                line = node.start_mark.line
            case _:
                break
    return line + 1
