"""Facts about single fields: enums, defaults and bounds.

The facts are rows of the text files in `data/facts`, with one file per API group and one block per
type:

    core.v1.ContainerPort
      protocol +enum=TCP,UDP,SCTP +default="TCP"

Defaulting, validation and the OpenAPI documents use the same rows. A `+` before a word means that
upstream's Go types have a marker of this name, so OpenAPI publishes the fact. Facts without a `+`
come from upstream's defaults.go and validation.go.

Defaults and immutable fields need no further code. All other facts are checked only if the code of
the group (`apiserver/validation/<group>`) calls `check_fields` for the type. Instead of calling
`check_fields`, this code can get an enum from `values_of` and compare the field's value with the
enum.

    +enum, enum          allowed values; in a row with both, `+enum` is for OpenAPI, and `enum` is
                         for validation
    items                allowed values of the items of a list; the code of the group gets these
                         values from `items_of`
    +default, default    the value of an absent field, as JSON; with the further word `unfilled`,
                         absent fields stay absent, and only OpenAPI has the default
    required             must not be empty; ="..." is the detail of the error
    listed               an absent field or an empty string gives the same error as a value that is
                         not in the enum
    empty                an empty string is checked like other strings; without this word, an empty
                         string counts as absent
    minimum, maximum     bounds of a number
    words                ="..." is the detail of the error for a wrong value, instead of the
                         standard one
    zero                 an absent number counts as 0; together with `required`, 0 is an error
    format               the format of a string, see `validation.meta.format`
    maxLength            maximum length of a string
    maxItems             maximum number of items in a list
    maxProperties        maximum number of entries in a map
    immutable            an update must not change the field; ="..." is the error detail. Further
                         words: `forbids` leaves the value out of the error, `shape` is the Go
                         type of the value (as in upstream, the error prints all fields of this
                         type), `called` is upstream's name of the field

The row of an immutable field begins with the field's path in the object, such as `spec.selector`.
The row is in the block of the object's type, such as `apps.v1.Deployment`.

upstream: staging/src/k8s.io/api/*/*/types.go, pkg/apis/*/*/defaults.go,
pkg/apis/*/validation/validation.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from fairlead.api.data_folder import data_folder

_WORD: Final = re.compile(r'(\+?[A-Za-z]+)(?:=("(?:[^"\\]|\\.)*"|\S+))?')
_LISTS: Final = ("+enum", "enum", "items")
_TEXTS: Final = ("format", "shape", "called")
_OF_IMMUTABLE: Final = frozenset(("immutable", "forbids", "shape", "called"))
_IMMUTABLE: Final = "field is immutable"
_KEYWORDS: Final = ("enum", "minimum", "maximum", "maxLength", "maxItems", "maxProperties")


class FieldFacts(Struct, frozen=True, kw_only=True):
    """The facts about one field."""

    # The values of OpenAPI keywords: enum, minimum, maximum, maxLength, maxItems and maxProperties.
    # The values of enum are those that validation allows, in the order in which the file of facts
    # lists them.
    keywords: Mapping[str, Any]
    # The allowed values of the items of a list; () if every value is allowed.
    items: tuple[str, ...] = ()
    published_values: tuple[str, ...] = ()
    # The detail of the error for an absent field, or None if the field may be absent.
    required: str | None = None
    is_listed: bool = False
    checks_empty: bool = False
    is_zero: bool = False
    words: str = ""
    format: str = ""

    @property
    def values(self) -> tuple[str, ...]:
        """The values that validation allows; empty if validation allows every value."""
        values: tuple[str, ...] = self.keywords.get("enum", ())
        return values


class ImmutableField(Struct, frozen=True):
    """An immutable field and the error for changing it; see `immutable` in the module docstring."""

    path: str
    words: str
    forbids: bool
    shape: str
    name: str


class TypeFacts(Struct, frozen=True):
    """The facts about a type.

    `fields` are the facts about its fields, by name. `defaults` are the values that absent fields
    get, and `published_defaults` are the defaults that OpenAPI publishes. `immutable` lists the
    immutable fields in upstream's order.
    """

    fields: dict[str, FieldFacts] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    published_defaults: dict[str, Any] = field(default_factory=dict)
    immutable: list[ImmutableField] = field(default_factory=list)


_UNKNOWN: Final = TypeFacts()


def facts_of(type_name: str) -> TypeFacts:
    """Return the facts about `type_name`, such as `core.v1.Container`; empty if there are none."""
    return _all_facts().get(type_name, _UNKNOWN)


def values_of(type_name: str, name: str) -> tuple[str, ...]:
    """Return the allowed values of the field `name` of `type_name`; () if every value is allowed.

    Raises KeyError if there are no facts about the field.
    """
    return _all_facts()[type_name].fields[name].values


def items_of(type_name: str, name: str) -> tuple[str, ...]:
    """Return the allowed items of the list in field `name` of the type; () if all are allowed.

    Raises KeyError if there are no facts about the field.
    """
    return _all_facts()[type_name].fields[name].items


def default_of(type_name: str, name: str) -> Any:
    """Return the default of field `name` of the type; raises KeyError if there is none."""
    return _all_facts()[type_name].defaults[name]


def known_types() -> tuple[str, ...]:
    """Return the names of all API types for which the files in `data/facts` have a block."""
    return tuple(_all_facts())


@cache
def _all_facts() -> Mapping[str, TypeFacts]:
    made: dict[str, TypeFacts] = {}
    folder = data_folder("fairlead.api").joinpath("facts")
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        facts = _UNKNOWN
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith(" "):
                name, _, rest = line.strip().partition(" ")
                _add(facts, name, dict(_words(rest)))
            elif line and not line.startswith("#"):
                facts = made[line] = TypeFacts()
    return made


def _words(text: str) -> Iterator[tuple[str, Any]]:
    """Yield (word, value) for each word in `text`, such as `+default="TCP"`.

    The value is a tuple, a text or a JSON value, depending on the word. A word without a value gets
    True.
    """
    for word, value in _WORD.findall(text):
        if word in _LISTS:
            yield word, tuple(value.split(","))
        elif word in _TEXTS:
            yield word, value
        else:
            yield word, msgspec.json.decode(value) if value else True


def _add(facts: TypeFacts, name: str, words: dict[str, Any]) -> None:
    """Add the facts about the field `name`; `words` maps the words of the field's row to values."""
    if "immutable" in words:
        detail = words["immutable"]
        facts.immutable.append(
            ImmutableField(
                path=name,
                words=_IMMUTABLE if detail is True else detail,
                forbids="forbids" in words,
                shape=words.get("shape", ""),
                name=words.get("called", name),
            )
        )
        if words.keys() <= _OF_IMMUTABLE:
            return
    stated = words.get("+default", words.get("default"))
    if stated is not None and "unfilled" not in words:
        facts.defaults[name] = stated
    if "+default" in words:
        facts.published_defaults[name] = stated
    needed = words.get("required")
    keywords: dict[str, Any] = {word: words[word] for word in _KEYWORDS if word in words}
    if "+enum" in words:
        keywords.setdefault("enum", words["+enum"])
    facts.fields[name] = FieldFacts(
        keywords=keywords,
        items=words.get("items", ()),
        published_values=tuple(sorted(words.get("+enum", ()))),
        required="" if needed is True else needed,
        is_listed="listed" in words,
        checks_empty="empty" in words,
        is_zero="zero" in words,
        words=words.get("words", ""),
        format=words.get("format", ""),
    )
