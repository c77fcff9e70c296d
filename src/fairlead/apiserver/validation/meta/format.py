"""Formats of single values: names, labels, ports, paths, percentages.

The functions called `..._problems` return the error texts of an invalid value, and () for a valid
value. The functions called `check_...` yield the errors of the value at the path `field`.

upstream: apimachinery/pkg/util/validation/{validation,ip}.go,
pkg/apis/core/validation/validation.go
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

from fairlead.api.codec import decode_as
from fairlead.api.json import Json
from fairlead.api.label import label_key_problems, label_value_problems, subdomain_problems
from fairlead.api.objects import (
    Affinity,
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    Pod,
    ReplicaSet,
)
from fairlead.api.text.integer import capped_integer
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.meta.change_text import internal_of
from fairlead.apiserver.validation.meta.field import Causes, invalid, not_supported, required

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

DNS_LABEL_MAX: Final = 63
SUBDOMAIN_MAX: Final = 253
_DNS_LABEL_FORM: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL: Final = re.compile(_DNS_LABEL_FORM)
_DNS_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    f"regex used for validation is '{_DNS_LABEL_FORM}')"
)
_DNS_1035_FORM: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_DNS_1035: Final = re.compile(_DNS_1035_FORM)
_DNS_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_DNS_1035_FORM}')"
)
PORT_MAX: Final = 65_535
INT32_MAX: Final = 2**31 - 1
IMMUTABLE: Final = "field is immutable"
_LINK_LOCAL_GROUPS: Final = tuple(map(ipaddress.ip_network, ("224.0.0.0/24", "ff02::/16")))
_SPECIAL: Final[tuple[tuple[Callable[[Address], bool], str], ...]] = (
    (lambda address: address.is_unspecified, "may not be unspecified ({})"),
    (
        lambda address: address.is_loopback,
        "may not be in the loopback range (127.0.0.0/8, ::1/128)",
    ),
    (
        lambda address: address.is_link_local,
        "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
    ),
    (
        lambda address: any(address in group for group in _LINK_LOCAL_GROUPS),
        "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
    ),
)
_PORT_CHARACTERS: Final = re.compile("[-a-z0-9]+")
_CONFIG_KEY_FORM: Final = "[-._a-zA-Z0-9]+"
_CONFIG_KEY: Final = re.compile(_CONFIG_KEY_FORM)
_HTTP_PATH_FORM: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_HTTP_PATH: Final = re.compile(_HTTP_PATH_FORM)
_HTTP_PATH_RULE: Final = f"Invalid path (regex used for validation is '{_HTTP_PATH_FORM}')"
_PERCENT: Final = re.compile("[0-9]+%")
_PERCENT_RULE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def dns_label_problems(name: str) -> tuple[str, ...]:
    """Return the error texts if `name` is not a DNS label (RFC 1123); () if it is one."""
    problems = _too_long(name, DNS_LABEL_MAX)
    if _DNS_LABEL.fullmatch(name):
        return problems
    is_subdomain = all(map(_DNS_LABEL.fullmatch, name.split(".")))
    return (*problems, "must not contain dots" if is_subdomain else _DNS_LABEL_RULE)


def dns_subdomain_problems(name: str) -> tuple[str, ...]:
    """Return the error texts if `name` is not a DNS subdomain; () if it is one."""
    problems = subdomain_problems(name)
    if not problems:
        return ()
    shape = tuple(problem for problem in problems if "no more than" not in problem)
    return _too_long(name, SUBDOMAIN_MAX) + shape


def caseless_dns_subdomain_problems(name: str) -> tuple[str, ...]:
    """Return the error texts if the lower-case form of `name` is not a DNS subdomain, else ().

    The names of CSI and DRA drivers may contain capital letters.
    """
    return dns_subdomain_problems(name.lower())


def dns_1035_problems(name: str) -> tuple[str, ...]:
    """Return the error texts if `name` is not a DNS-1035 label; () if it is one.

    A DNS-1035 label begins with a letter.
    """
    problems = _too_long(name, DNS_LABEL_MAX)
    return problems if _DNS_1035.fullmatch(name) else (*problems, _DNS_1035_RULE)


def path_segment_problems(name: str) -> tuple[str, ...]:
    """Return the error texts if `name` cannot be a segment of a URL's path; () if it can."""
    # upstream: apimachinery/pkg/api/validation/path/name.go:IsValidPathSegmentName
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{mark}'" for mark in "/%" if mark in name)


def _too_long(text: str, bytes_max: int) -> tuple[str, ...]:
    if len(text.encode()) <= bytes_max:
        return ()
    return (f"must be no more than {bytes_max} characters",)


def too_long(field: str, bytes_max: int) -> Cause:
    """Return the error for a value that is longer than `bytes_max` bytes."""
    return Cause("FieldValueTooLong", f"Too long: may not be more than {bytes_max} bytes", field)


def not_found(field: str, value: str) -> Cause:
    """Return the error for a reference to an object that does not exist."""
    return Cause("FieldValueNotFound", f'Not found: "{value}"', field)


def check_one_of(field: str, value: str, known: Iterable[str]) -> Causes:
    """Yield an error if `value` is not one of `known`."""
    if value not in known:
        yield not_supported(field, value, known)


def check_at_least(field: str, value: int | None, least: int) -> Causes:
    """Yield an error if `value` is present and less than `least`."""
    if value is not None and value < least:
        yield invalid(field, value, f"must be greater than or equal to {least}")


def check_unchanged(field: str, old: Any, new: Any, shape: str = "") -> Causes:
    """Yield an error if `old` and `new`, two values of an immutable field, differ.

    An absent value equals an empty list or map. `shape` is the type of `new` or, if `new` is a
    list, the type of its items. If `shape` is not "", the error prints `new` as upstream does, with
    the fields of the Go type.
    """
    if old == new or (_is_none(old) and _is_none(new)):
        return
    yield invalid(field, shown_as(shape, new) if shape else new, IMMUTABLE)


def _is_none(value: Any) -> bool:
    # upstream: apimachinery/third_party/forked/golang/reflect: unset and empty slices are equal
    return value is None or value in ([], {})


def shown_as(shape: str, value: Any) -> Any:
    """Return `value` as upstream's errors print it, with the fields of its internal Go type.

    `shape` is the type of `value` or, if `value` is a list, of its items.
    """
    if isinstance(value, list):
        return [internal_of(shape, item) for item in value]
    return internal_of(shape, value)


def check_port_number(field: str, number: int) -> Causes:
    """Yield the errors of a port number."""
    if not 1 <= number <= PORT_MAX:
        yield invalid(field, number, f"must be between 1 and {PORT_MAX}, inclusive")


def port_name_problems(name: str) -> tuple[str, ...]:
    """Return the error texts if `name` is not a port name (RFC 6335); () if it is one."""
    # upstream: validation.go:IsValidPortName
    problems = []
    if len(name.encode()) > 15:
        problems.append("must be no more than 15 characters")
    if not _PORT_CHARACTERS.fullmatch(name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name and (name[0] == "-" or name[-1] == "-"):
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


def check_port(field: str, port: int | str) -> Causes:
    """Yield the errors of a port's number or name."""
    if isinstance(port, int):
        yield from check_port_number(field, port)
    else:
        for problem in port_name_problems(port):
            yield invalid(field, port, problem)


def config_key_problems(key: str) -> tuple[str, ...]:
    """Return the error texts if `key` cannot be a key of a ConfigMap or Secret; () if it can."""
    # upstream: validation.go:IsConfigMapKey
    problems = []
    if len(key.encode()) > 253:
        problems.append("must be no more than 253 characters")
    if not _CONFIG_KEY.fullmatch(key):
        problems.append(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
            "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            f"'{_CONFIG_KEY_FORM}')"
        )
    if key == ".":
        problems.append("must not be '.'")
    elif key == "..":
        problems.append("must not be '..'")
    elif key.startswith(".."):
        problems.append("must not start with '..'")
    return tuple(problems)


def label_selector(selector: Json | None) -> LabelSelector | None:
    """Return the typed view of a label selector; None if `selector` is None."""
    if selector is None:
        return None
    return decode_as(ReplicaSet, {"spec": {"selector": selector}}).spec.selector


def node_selector(selector: Json) -> NodeSelector:
    """Return the typed view of a node selector."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    selector = {"nodeSelectorTerms": selector.get("nodeSelectorTerms") or []}
    spec = {"affinity": {"nodeAffinity": {required: selector}}}
    match decode_as(Pod, {"spec": spec}).spec.affinity:
        case Affinity(
            node_affinity=NodeAffinity(
                required_during_scheduling_ignored_during_execution=NodeSelector() as found
            )
        ):
            return found
    return NodeSelector()


def check_share(field: str, amount: int | str) -> Causes:
    """Yield the errors of `amount`, which must be a non-negative integer or a percentage."""
    if isinstance(amount, int):
        yield from check_at_least(field, amount, 0)
    elif not _PERCENT.fullmatch(amount):
        yield invalid(field, amount, _PERCENT_RULE)


def check_not_beyond_all(field: str, amount: int | str) -> Causes:
    """Yield an error if `amount` is a percentage above 100%."""
    if (
        isinstance(amount, str)
        and _PERCENT.fullmatch(amount)
        and capped_integer(amount[:-1], 101) > 100
    ):
        yield invalid(field, amount, "must not be greater than 100%")


def is_nothing(amount: int | str | None) -> bool:
    """Return whether `amount`, a number or percentage, is zero or absent."""
    return amount in (0, "0%", None)


def check_subdomain(field: str, text: str) -> Causes:
    """Yield the errors of a DNS subdomain."""
    for problem in dns_subdomain_problems(text):
        yield invalid(field, text, problem)


def check_dns_label(field: str, text: str) -> Causes:
    """Yield the errors of a DNS label."""
    for problem in dns_label_problems(text):
        yield invalid(field, text, problem)


def check_qualified_name(field: str, text: str) -> Causes:
    """Yield the errors of a qualified name, such as a label key."""
    for problem in label_key_problems(text):
        yield invalid(field, text, problem)


def check_label_value(field: str, text: str) -> Causes:
    """Yield the errors of a label value."""
    for problem in label_value_problems(text):
        yield invalid(field, text, problem)


def check_domain_name(field: str, text: str) -> Causes:
    """Yield the errors of a fully qualified domain name."""
    # upstream: apimachinery/pkg/util/validation/validation.go:IsFullyQualifiedDomainName
    if not text:
        yield required(field)
        return
    name = text.removesuffix(".")
    problems = dns_subdomain_problems(name)
    if problems:
        yield invalid(field, name, ",".join(problems))
    elif "." not in name:
        why = "should be a domain with at least two segments separated by dots"
        yield invalid(field, name, why)
    else:
        labels = ((label, dns_label_problems(label)) for label in name.split("."))
        wrong = ((label, found) for label, found in labels if found)
        for label, found in islice(wrong, 1):
            yield invalid(field, label, ",".join(found))


def check_not_special(field: str, text: str) -> Causes:
    """Yield the errors of an IP address.

    The address must be well-formed, and not be a loopback, link-local or unspecified address.
    """
    # upstream: pkg/apis/core/validation/validation.go:ValidateEndpointIP
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        yield invalid(field, text, "must be a valid IP address")
        return
    for trait, why in _SPECIAL:
        if trait(address):
            yield invalid(field, text, why.format(text))


def too_many(field: str, count: int, most: int) -> Cause:
    """Return the error for a list with `count` items; `most` is the maximum number of items."""
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {most} items", field)


def check_domain_path(field: str, path: str) -> Causes:
    """Yield the errors of a domain-prefixed path such as `acme.io/foo`."""
    # upstream: apimachinery/pkg/util/validation/validation.go:IsDomainPrefixedPath
    host, _, rest = path.partition("/")
    if not path:
        yield required(field)
    elif not host or not rest:
        yield invalid(field, path, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        for problem in dns_subdomain_problems(host):
            yield invalid(field, host, problem)
        if not _HTTP_PATH.fullmatch(rest):
            yield invalid(field, rest, _HTTP_PATH_RULE)


def check_backsteps(field: str, path: str) -> Causes:
    """Yield an error if one of the segments of `path` is `..`."""
    if ".." in path.split("/"):
        yield invalid(field, path, "must not contain '..'")


def check_local_path(field: str, path: str) -> Causes:
    """Yield an error if `path` is absolute, or if one of its segments is `..`."""
    # upstream: pkg/apis/core/validation/validation.go:validateLocalDescendingPath
    if path.startswith("/"):
        yield invalid(field, path, "must be a relative path")
    yield from check_backsteps(field, path)
