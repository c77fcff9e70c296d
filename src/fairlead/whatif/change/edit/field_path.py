"""Sets one field of an object by its path: `spec.template.spec.containers[app].image=app:2`.

A step of the path is a field name, or text in brackets. For a map, the text in brackets is a key
(`metadata.labels[example.com/tier]`), with or without quotes. For a list, the text is the index of
an item, or the value of the item's merge key. Missing objects in the path are created, but missing
list items are not created. If a kind has no schema, a number in brackets is the index of an item,
and a number in quotes is a key.

The schema of the kind determines which fields exist and the type of a value: `8` is a string for a
label and a number for replicas. Values of kinds without a schema are read as YAML, except the
values of labels, annotations and node selectors, which are strings in all kinds. Values that are
objects or lists are read as YAML, too. In this YAML, words such as `Off` are strings; only `true`
and `false` are booleans. `null` removes the field; it does not create missing objects in the path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.schema.model import Schema, Type
from fairlead.whatif.input.error import known_names

_STEP: Final = re.compile(
    r"\.?(?P<field>[^.\[\]]+)|\[(?P<quote>[\"']?)(?P<key>[^\[\]]*)(?P=quote)\]"
)
_TEXTS: Final = (Type.STRING, Type.BYTES, Type.QUANTITY, Type.TIME, Type.MICRO_TIME)
_INTEGERS: Final = (Type.INT32, Type.INT64)
# Fields that are maps of texts wherever they occur, also in custom resources.
_MAPS_OF_TEXTS: Final = ("labels", "annotations", "matchLabels", "nodeSelector")
_TEXT: Final = Schema(Type.STRING)
_BOOLEANS: Final = {"true": True, "false": False}
_DIGITS_MAX: Final = 10  # no list has so many items
# The API server ignores changes of some of these fields, and refuses changes of the others.
UNCHANGEABLE: Final = (
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.creationTimestamp",
    "metadata.generation",
)


class SetFieldError(ValueError):
    """A path or value that does not fit the object; `field` is the incorrect part of the path."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field
        self.problem = problem


class _Place(Struct, frozen=True):
    """The place of a value inside an object: `holder[key]`.

    `holder` is the object or list that contains the value. `schema` is the schema of the value.
    `merge_key` is the merge key of the value's items if the value is a list of objects.
    """

    holder: Any
    key: str | int
    schema: Schema | None
    merge_key: str = ""


def set_field(obj: Json, path: str, text: str, schema: Schema | None) -> tuple[str | int, ...]:
    """Set the field of `obj` at `path` to `text`, read as a value of the type in `schema`.

    The text `null` removes the field. Returns the keys and list indices of the path. Raises
    SetFieldError if `path` or `text` does not fit the object.
    """
    if path == "metadata" or path in UNCHANGEABLE:
        raise SetFieldError(path, "cannot be changed")
    done, place = "", _Place({"": obj}, "", schema)
    keys: list[str | int] = []
    in_map = ""  # the path of the map in which the last step is a key without brackets
    for step, is_key, is_quoted in tuple(_steps(path)):  # checks the whole path first
        if in_map and place.schema is not None and place.schema.type in _TEXTS:
            key = path.removeprefix(f"{in_map}.").replace("\\", "")
            raise SetFieldError(path, f"a key with dots is written in brackets: {in_map}[{key}]")
        is_map = place.schema is not None and place.schema.type is Type.MAP
        in_map = done if (is_map or _has_texts(place)) and not is_key else ""
        done += f"[{step}]" if is_key else f"{'.' if done else ''}{step}"
        may_be_index = is_key and not is_quoted and _is_number(step)
        place = _inner(place, step, done, creates=text != "null", may_be_index=may_be_index)
        keys.append(place.key)
    if text == "null":
        _remove(place)
    else:
        place.holder[place.key] = _value(text, place.schema, path)
    return tuple(keys)


def _steps(path: str) -> Iterator[tuple[str, bool, bool]]:
    """Yield (step, whether it is in brackets, whether it is in quotes) for each step of `path`.

    Raises SetFieldError.
    """
    end = 0
    for match in _STEP.finditer(path):
        if match.start() != end:
            break
        end = match.end()
        if match["field"] is not None:
            yield match["field"], False, False
        else:
            yield match["key"], True, bool(match["quote"])
    if not path or end != len(path):
        raise SetFieldError(path, "is not a path such as spec.template.spec.containers[0].image")


def _inner(place: _Place, step: str, done: str, *, creates: bool, may_be_index: bool) -> _Place:
    """Return the place that `step` selects in the value at `place`.

    If there is no value at `place`, an empty object is used instead. If `creates` is set, this
    object is also stored at `place`. `may_be_index` tells whether `step` is written as the index of
    an item. Raises SetFieldError if the value has no place for `step`. The error's `field` is
    `done`, the path that ends with `step`.
    """
    schema = place.schema
    kind = None if schema is None or schema.type is Type.ANY else schema.type
    value = _present(place)
    if value is None:
        if kind is Type.LIST or (kind is None and may_be_index and not _has_texts(place)):
            raise SetFieldError(done, "the list is empty; set it as a whole")
        value = {}
        if creates:
            place.holder[place.key] = value
    if isinstance(value, list):
        return _Place(value, _index(value, step, place.merge_key, done), schema and schema.items)
    if not isinstance(value, dict):
        raise SetFieldError(done, "its parent is neither an object nor a list")
    if schema is None or kind is None:
        return _Place(value, step, _TEXT if _has_texts(place) else None)
    if kind is Type.MAP:
        return _Place(value, step, schema.items)
    field = schema.fields.get(step)
    if field is None:
        raise SetFieldError(done, f"there is no such field; {known_names(step, schema.fields)}")
    keys = field.schema.keys
    return _Place(value, step, field.schema, field.merge_key or (keys[0] if keys else ""))


def _has_texts(place: _Place) -> bool:
    """Return whether the value at `place` has no schema, but is known to be a map of texts."""
    is_unknown = place.schema is None or place.schema.type is Type.ANY
    return is_unknown and place.key in _MAPS_OF_TEXTS


def _present(place: _Place) -> Any:
    if isinstance(place.holder, list):
        return place.holder[int(place.key)]
    return place.holder.get(place.key)


def _index(items: list[Any], step: str, merge_key: str, done: str) -> int:
    """Return the index in `items` that `step` selects.

    `step` is the index itself, or the value of the item's field `merge_key`. `done` is the path up
    to `step`. Raises SetFieldError.
    """
    if _is_number(step):
        if int(step) < len(items):
            return int(step)
        count = "is 1 item" if len(items) == 1 else f"are {len(items)} items"
        raise SetFieldError(done, f"there {count}; the index of the first is 0")
    key = merge_key or "name"
    named = [(n, str(i[key])) for n, i in enumerate(items) if isinstance(i, dict) and key in i]
    for number, name in named:
        if name == step:
            return number
    known = known_names(step, (name for _, name in named))
    raise SetFieldError(done, f"no item has this {key}; {known}")


def _is_number(step: str) -> bool:
    return step.isascii() and step.isdigit() and len(step) < _DIGITS_MAX


def _remove(place: _Place) -> None:
    if isinstance(place.holder, list):
        del place.holder[int(place.key)]
    else:
        place.holder.pop(place.key, None)


def _value(text: str, schema: Schema | None, path: str) -> Any:
    """Return `text`, the new value at `path`, converted to the type in `schema`.

    Raises SetFieldError.
    """
    kind = None if schema is None else schema.type
    if kind in _TEXTS:
        return text
    if kind is Type.BOOLEAN:
        if text not in _BOOLEANS:
            raise SetFieldError(path, f"{text!r} is neither true nor false")
        return _BOOLEANS[text]
    is_integer = re.fullmatch(r"[+-]?[0-9]{1,19}", text) is not None
    if kind in _INTEGERS or (kind is Type.INT_OR_STRING and is_integer):
        if not is_integer:
            raise SetFieldError(path, f"{text!r} is not an integer")
        return int(text)
    if kind is Type.INT_OR_STRING:
        return text
    value = _yaml(text, path)
    wanted = {Type.LIST: list, Type.MAP: dict, Type.OBJECT: dict}.get(kind) if kind else None
    if wanted is not None and not isinstance(value, wanted):
        what = "a list such as [a, b]" if wanted is list else "an object such as {a: b}"
        raise SetFieldError(path, f"{text!r} is not {what}")
    return _without_nulls(value, schema)


def _without_nulls(value: Any, schema: Schema | None) -> Any:
    """Return `value` with its nulls as the API server decodes them.

    In Go, null leaves a field as it is, so the field is absent. In a map of texts, null becomes the
    empty text. For example, YAML reads `{zone:a}`, which lacks a space, as {"zone:a": null}. Other
    nulls are kept, and are refused later.

    upstream: encoding/json: Unmarshal
    """
    if schema is None:
        return value
    if isinstance(value, list):
        return [_without_nulls(item, schema.items) for item in value]
    if not isinstance(value, dict):
        return value
    if schema.type is Type.MAP:
        is_of_texts = schema.items is not None and schema.items.type is Type.STRING
        return {
            key: "" if item is None and is_of_texts else _without_nulls(item, schema.items)
            for key, item in value.items()
        }
    if schema.type is not Type.OBJECT:
        return value
    found = {}
    for key, item in value.items():
        field = schema.fields.get(key)
        if field is None:
            found[key] = item  # an unknown field, which is refused later
        elif item is not None:
            found[key] = _without_nulls(item, field.schema)
    return found


def _yaml(text: str, path: str) -> Any:
    # Imported only if it is needed: few changes have values in YAML.
    from fairlead.api.text import yaml_documents  # noqa: PLC0415
    from fairlead.api.text.yaml_scalar import argument_scalar  # noqa: PLC0415

    try:
        found = list(yaml_documents.documents(text, plain=argument_scalar))
    except yaml_documents.YamlError as cause:
        raise SetFieldError(path, f"{text!r} is not YAML: {cause}") from None
    return found[0] if found else ""
