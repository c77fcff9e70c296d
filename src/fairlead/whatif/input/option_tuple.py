"""refuse_single_texts: refuses a single string in a field that takes a tuple of strings."""

from __future__ import annotations

from msgspec import Struct, structs

from fairlead.whatif.input.error import InputError


def refuse_single_texts(options: Struct) -> None:
    """Raise InputError if a field of `options` that takes a tuple of strings is a single string.

    Otherwise, `drain="n1"` would drain the nodes `n` and `1`.
    """
    for field in structs.fields(options):
        value = getattr(options, field.name)
        if field.default == () and isinstance(value, str):
            problem = f"takes a tuple such as ({value!r},), not the text {value!r}"
            raise InputError(type(options).__name__, problem, field=field.name)
