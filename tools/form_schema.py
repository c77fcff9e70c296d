"""Writes the JSON schemas of files and answers, from the classes that describe them.

    python tools/form_schema.py

It also writes the tables of docs/answers.md. tests/test_form_schema.py compares the files with the
output of this tool.
"""

from __future__ import annotations

import json
import types
import typing
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import NODEFAULT, Meta, Struct, UnsetType, structs

from fairlead.whatif.configuration.autoscaling.node_group_file import NodeGroupFile
from fairlead.whatif.result.form.answer_form import AnswerForm
from fairlead.whatif.result.form.every_form import EveryForm

DOCS: Final = Path(__file__).parent.parent / "docs"
FORMS: Final[dict[str, Any]] = {
    "node-groups-schema.json": NodeGroupFile,
    "answer-schema.json": EveryForm,
}
_HEADS: Final = {
    "answer-schema.json": {
        "$id": "https://fairlead.dev/schemas/v1beta1/answer.json",
        "title": "Answers of fairlead that consist of tables, and explanations",
    }
}
PAGE: Final = DOCS / "answers.md"
MARK: Final = "<!-- tools/form_schema.py writes the rest of this page. -->\n"
_NAMES: Final = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    Any: "any value",
}
_PLURALS: Final = {"string": "strings", "integer": "integers", "any value": "values"}
_HEADER: Final = ("| field | type | meaning |", "|---|---|---|")


def main() -> None:
    """Write the files."""
    for name in FORMS:
        (DOCS / name).write_text(schema_text(name))
    PAGE.write_text(page_text(PAGE.read_text()))


def schema_text(name: str) -> str:
    """Return the content of the schema file `name`."""
    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_HEADS.get(name, {}),
        **msgspec.json.schema(FORMS[name]),
    }
    return json.dumps(schema, indent=2) + "\n"


def page_text(page: str) -> str:
    """Return the text `page` of docs/answers.md with the present tables after MARK."""
    head, _, _ = page.partition(MARK)
    return head + MARK + "\n".join(_Tables().lines()) + "\n"


class _Tables:
    """The tables of all answers; a form that several answers contain gets a table of its own."""

    def __init__(self) -> None:
        kinds = typing.get_args(EveryForm)
        uses = Counter(one for kind in kinds for one in _below(kind) - {kind})
        self._kinds = kinds
        self._shared = {one for one, count in uses.items() if count > 1 or one in kinds}

    def lines(self) -> Iterator[str]:
        """Yield the lines of the section of every answer, and of the shared objects."""
        yield from ("", "## Kinds of answers", "", "| `kind` | answer |", "|---|---|")
        for kind in self._kinds:
            yield f"| [`{_kind(kind)}`](#{_kind(kind).lower()}) | {_words(kind)} |"
        yield from _section("##", "Fields of every answer", AnswerForm)
        yield (
            "Of these fields, `Explanation` and `GroupExplanation` have only `apiVersion`, `kind` "
            "and `notes`."
        )
        yield ""
        yield from _HEADER
        yield "| `kind` | string | the kind of the answer |"
        yield from self._rows(AnswerForm, "")
        common = {one.name for one in structs.fields(AnswerForm)}
        for kind in self._kinds:
            yield from _section("##", _kind(kind), kind)
            yield from _HEADER
            yield from self._rows(kind, "", common)
        yield from ("", "## Objects in several answers")
        for shared in sorted(self._shared - set(self._kinds), key=_title):
            yield from _section("###", _title(shared), shared)
            yield from _HEADER
            yield from self._rows(shared, "")

    def _rows(
        self, form: type[Struct], path: str, without: frozenset[str] | set[str] = frozenset()
    ) -> Iterator[str]:
        """Yield a row for each field of `form`, and of the objects that only it contains."""
        hints = typing.get_type_hints(form, include_extras=True)
        for one in structs.fields(form):
            if one.name in without:
                continue
            name, (hint, meta) = f"{path}{one.encode_name}", _parts(hints[one.name])
            yield f"| `{name}` | {self._type(hint)} | {meta.description} |"
            inner = _form_in(hint)
            if inner is not None and inner not in self._shared:
                dots = {list: "[].", dict: ".*."}.get(typing.get_origin(hint), ".")
                yield from self._rows(inner, f"{name}{dots}")

    def _type(self, hint: Any) -> str:
        """Return the type `hint` as text; null is left out, because the meaning says it."""
        args = typing.get_args(hint)
        match typing.get_origin(hint):
            case typing.Literal:
                return "string"
            case origin if origin is list:
                return f"list of {self._plural(args[0])}"
            case origin if origin is dict:
                return f"object of {self._plural(_parts(args[1])[0])}"
        if isinstance(hint, type) and issubclass(hint, Struct):
            return f"[{_title(hint)}](#{_anchor(hint)})" if hint in self._shared else "object"
        return _NAMES[hint]

    def _plural(self, hint: Any) -> str:
        text = self._type(hint)
        if text.startswith(("list of", "object of")):
            return text.replace("list of", "lists of").replace("object of", "objects of")
        return _PLURALS.get(text, text if text.startswith("[") else f"{text}s")


def _kind(form: type[Struct]) -> str:
    """Return the value of `kind` in the answers of `form`."""
    return str(form.__struct_config__.tag)


def _words(form: type[Struct]) -> str:
    """Return the first paragraph of the docstring of `form`."""
    return (form.__doc__ or "").partition("\n\n")[0]


def _section(level: str, title: str, form: type[Struct]) -> Iterator[str]:
    yield from ("", f"{level} {title}", "", _words(form), "")


def _title(form: type[Struct]) -> str:
    return form.__name__.removesuffix("Form")


def _anchor(form: type[Struct]) -> str:
    return _title(form).lower()


def _parts(hint: Any) -> tuple[Any, Meta]:
    """Return the type of `hint` without null and unset, and the Meta of its Annotated."""
    meta = Meta()
    if typing.get_origin(hint) is Annotated:
        hint, meta = typing.get_args(hint)[:2]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        [hint] = (
            one for one in typing.get_args(hint) if one not in (type(None), UnsetType, NODEFAULT)
        )
    return hint, meta


def _form_in(hint: Any) -> type[Struct] | None:
    """Return the form in `hint`: the form itself, or that of the items of a list or a dict."""
    while typing.get_origin(hint) in (list, dict):
        hint, _ = _parts(typing.get_args(hint)[-1])
    return hint if isinstance(hint, type) and issubclass(hint, Struct) else None


def _below(form: type[Struct]) -> set[type[Struct]]:
    """Return `form` and the forms that it contains."""
    found = {form}
    for hint in typing.get_type_hints(form, include_extras=True).values():
        inner = _form_in(_parts(hint)[0])
        if inner is not None and inner not in found:
            found |= _below(inner)
    return found


if __name__ == "__main__":
    main()
