"""Validates label keys and values, with upstream's messages.

upstream: apimachinery/pkg/api/validate/content/{kube,dns,errors}.go
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.api.text.text_cache import text_cache

CACHE_SIZE: Final = 1 << 12
SUBDOMAIN_CACHE_SIZE: Final = 1 << 14  # the names of nodes are checked again and again
NAME_BYTES_MAX: Final = 63
SUBDOMAIN_BYTES_MAX: Final = 253

_NAME_FORM: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORM: Final = f"({_NAME_FORM})?"
_DNS_LABEL_FORM: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORM: Final = rf"{_DNS_LABEL_FORM}(\.{_DNS_LABEL_FORM})*"
_NAME: Final = re.compile(_NAME_FORM)
_SUBDOMAIN: Final = re.compile(_SUBDOMAIN_FORM)

_CHARACTERS: Final = (
    "consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
_NAME_RULE: Final = (
    f"must {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME_FORM}')"
)
_KEY_RULE: Final = (
    f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
_VALUE_RULE: Final = (
    f"a valid label must be an empty string or {_CHARACTERS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '{_VALUE_FORM}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', "
    f"regex used for validation is '{_SUBDOMAIN_FORM}')"
)


@text_cache(maxsize=CACHE_SIZE)
def label_value_problems(value: str) -> tuple[str, ...]:
    """Return what is wrong with the label value `value`; () if it is valid."""
    problems = _length_problems(value, NAME_BYTES_MAX)
    if value and not _NAME.fullmatch(value):
        problems += (_VALUE_RULE,)
    return problems


@text_cache(maxsize=CACHE_SIZE)
def label_key_problems(key: str) -> tuple[str, ...]:
    """Return what is wrong with the label key `key` (`name` or `subdomain/name`); () if valid."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return (_KEY_RULE,)
    problems = _prefix_problems(prefix) if slash else ()
    name_problems = _length_problems(name, NAME_BYTES_MAX) if name else ("must be non-empty",)
    if not _NAME.fullmatch(name):
        name_problems += (_NAME_RULE,)
    return problems + tuple(f"name part {problem}" for problem in name_problems)


@text_cache(maxsize=SUBDOMAIN_CACHE_SIZE)
def subdomain_problems(name: str) -> tuple[str, ...]:
    """Return what is wrong with the DNS subdomain `name` (RFC 1123); () if it is valid."""
    problems = _length_problems(name, SUBDOMAIN_BYTES_MAX)
    return problems if _SUBDOMAIN.fullmatch(name) else (*problems, _SUBDOMAIN_RULE)


def _prefix_problems(prefix: str) -> tuple[str, ...]:
    problems = subdomain_problems(prefix) if prefix else ("must be non-empty",)
    return tuple(f"prefix part {problem}" for problem in problems)


def _length_problems(text: str, bytes_max: int) -> tuple[str, ...]:
    if len(text.encode()) <= bytes_max:
        return ()
    return (f"must be no more than {bytes_max} bytes",)
