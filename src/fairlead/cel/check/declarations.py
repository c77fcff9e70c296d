"""The declared functions, with the argument types and result types of their overloads.

    .name: identity(types…) result; identity(types…) result

Each entry declares one function with its overloads. `identity` is upstream's name of an overload,
such as `add_int64`. A function whose name begins with a dot is called on a value. The first
argument type of each of its overloads is the type of this value.

`?(A)` is the type of an optional value. `$` is an abbreviation of `kubernetes.`, and `%` of
`kubernetes.authorization.`. The checker and the cost estimate use these overloads; `library`
implements them.

upstream: cel-go's common/stdlib, ext; apiserver/pkg/cel/library
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from msgspec import Struct

from fairlead.cel.check.types import CelType, parse_type, parse_types

_SHORT: Final = (("%", "kubernetes.authorization."), ("$", "kubernetes."), ("?(", "optional_type("))
_OVERLOAD: Final = re.compile(r"([^\s(]+)\((.*)\) (.+)")
_LINE: Final = re.compile(r"^(\S+):((?:\s.*)(?:\n .*)*)$", re.MULTILINE)


_LANGUAGE: Final = r"""
!_: logical_not(bool) bool
-_: negate_double(double) double; negate_int64(int) int
@in: in_list(A, list(A)) bool; in_map(A, map(A, B)) bool
@not_strictly_false: not_strictly_false(bool) bool
.@sortByAssociatedKeys: list_int_sortByAssociatedKeys(list(T), list(int)) list(T);
    list_uint_sortByAssociatedKeys(list(T), list(uint)) list(T);
    list_double_sortByAssociatedKeys(list(T), list(double)) list(T);
    list_bool_sortByAssociatedKeys(list(T), list(bool)) list(T);
    list_google.protobuf.Duration_sortByAssociatedKeys(list(T), list(duration)) list(T);
    list_google.protobuf.Timestamp_sortByAssociatedKeys(list(T), list(timestamp)) list(T);
    list_string_sortByAssociatedKeys(list(T), list(string)) list(T);
    list_bytes_sortByAssociatedKeys(list(T), list(bytes)) list(T)
_!=_: not_equals(A, A) bool
_%_: modulo_int64(int, int) int; modulo_uint64(uint, uint) uint
_&&_: logical_and(bool, bool) bool
_*_: multiply_double(double, double) double; multiply_int64(int, int) int;
    multiply_uint64(uint, uint) uint
_+_: add_bytes(bytes, bytes) bytes; add_double(double, double) double;
    add_duration_duration(duration, duration) duration;
    add_duration_timestamp(duration, timestamp) timestamp;
    add_timestamp_duration(timestamp, duration) timestamp; add_int64(int, int) int;
    add_list(list(A), list(A)) list(A); add_string(string, string) string;
    add_uint64(uint, uint) uint
_-_: subtract_double(double, double) double;
    subtract_duration_duration(duration, duration) duration; subtract_int64(int, int) int;
    subtract_timestamp_duration(timestamp, duration) timestamp;
    subtract_timestamp_timestamp(timestamp, timestamp) duration; subtract_uint64(uint, uint) uint
_/_: divide_double(double, double) double; divide_int64(int, int) int;
    divide_uint64(uint, uint) uint
_<=_: less_equals_bool(bool, bool) bool; less_equals_int64(int, int) bool;
    less_equals_int64_double(int, double) bool; less_equals_int64_uint64(int, uint) bool;
    less_equals_uint64(uint, uint) bool; less_equals_uint64_double(uint, double) bool;
    less_equals_uint64_int64(uint, int) bool; less_equals_double(double, double) bool;
    less_equals_double_int64(double, int) bool; less_equals_double_uint64(double, uint) bool;
    less_equals_string(string, string) bool; less_equals_bytes(bytes, bytes) bool;
    less_equals_timestamp(timestamp, timestamp) bool;
    less_equals_duration(duration, duration) bool
_<_: less_bool(bool, bool) bool; less_int64(int, int) bool; less_int64_double(int, double) bool;
    less_int64_uint64(int, uint) bool; less_uint64(uint, uint) bool;
    less_uint64_double(uint, double) bool; less_uint64_int64(uint, int) bool;
    less_double(double, double) bool; less_double_int64(double, int) bool;
    less_double_uint64(double, uint) bool; less_string(string, string) bool;
    less_bytes(bytes, bytes) bool; less_timestamp(timestamp, timestamp) bool;
    less_duration(duration, duration) bool
_==_: equals(A, A) bool
_>=_: greater_equals_bool(bool, bool) bool; greater_equals_int64(int, int) bool;
    greater_equals_int64_double(int, double) bool; greater_equals_int64_uint64(int, uint) bool;
    greater_equals_uint64(uint, uint) bool; greater_equals_uint64_double(uint, double) bool;
    greater_equals_uint64_int64(uint, int) bool; greater_equals_double(double, double) bool;
    greater_equals_double_int64(double, int) bool;
    greater_equals_double_uint64(double, uint) bool; greater_equals_string(string, string) bool;
    greater_equals_bytes(bytes, bytes) bool; greater_equals_timestamp(timestamp, timestamp) bool;
    greater_equals_duration(duration, duration) bool
_>_: greater_bool(bool, bool) bool; greater_int64(int, int) bool;
    greater_int64_double(int, double) bool; greater_int64_uint64(int, uint) bool;
    greater_uint64(uint, uint) bool; greater_uint64_double(uint, double) bool;
    greater_uint64_int64(uint, int) bool; greater_double(double, double) bool;
    greater_double_int64(double, int) bool; greater_double_uint64(double, uint) bool;
    greater_string(string, string) bool; greater_bytes(bytes, bytes) bool;
    greater_timestamp(timestamp, timestamp) bool; greater_duration(duration, duration) bool
_?._: select_optional_field(dyn, string) ?(V)
_?_:_: conditional(bool, A, A) A
_[?_]: list_optindex_optional_int(list(V), int) ?(V);
    optional_list_optindex_optional_int(?(list(V)), int) ?(V);
    map_optindex_optional_value(map(K, V), K) ?(V);
    optional_map_optindex_optional_value(?(map(K, V)), K) ?(V)
_[_]: index_list(list(A), int) A; index_map(map(A, B), A) B;
    optional_list_index_int(?(list(V)), int) ?(V); optional_map_index_value(?(map(K, V)), K) ?(V)
_||_: logical_or(bool, bool) bool
bool: bool_to_bool(bool) bool; string_to_bool(string) bool
bytes: bytes_to_bytes(bytes) bytes; string_to_bytes(string) bytes
cel.@mapInsert: @mapInsert_map_key_value(map(K, V), K, V) map(K, V);
    @mapInsert_map_map(map(K, V), map(K, V)) map(K, V)
.charAt: string_char_at_int(string, int) string
.contains: contains_string(string, string) bool
.distinct: list_distinct(list(T)) list(T)
double: double_to_double(double) double; int64_to_double(int) double;
    string_to_double(string) double; uint64_to_double(uint) double
duration: duration_to_duration(duration) duration; string_to_duration(string) duration
dyn: to_dyn(A) dyn
.endsWith: ends_with_string(string, string) bool
.first: list_first(list(V)) ?(V)
.flatten: list_flatten(list(list(T))) list(T); list_flatten_int(list(dyn), int) list(dyn)
.format: string_format(string, list(dyn)) string
.getDate: timestamp_to_day_of_month_1_based(timestamp) int;
    timestamp_to_day_of_month_1_based_with_tz(timestamp, string) int
.getDayOfMonth: timestamp_to_day_of_month(timestamp) int;
    timestamp_to_day_of_month_with_tz(timestamp, string) int
.getDayOfWeek: timestamp_to_day_of_week(timestamp) int;
    timestamp_to_day_of_week_with_tz(timestamp, string) int
.getDayOfYear: timestamp_to_day_of_year(timestamp) int;
    timestamp_to_day_of_year_with_tz(timestamp, string) int
.getFullYear: timestamp_to_year(timestamp) int; timestamp_to_year_with_tz(timestamp, string) int
.getHours: timestamp_to_hours(timestamp) int; timestamp_to_hours_with_tz(timestamp, string) int;
    duration_to_hours(duration) int
.getMilliseconds: timestamp_to_milliseconds(timestamp) int;
    timestamp_to_milliseconds_with_tz(timestamp, string) int;
    duration_to_milliseconds(duration) int
.getMinutes: timestamp_to_minutes(timestamp) int;
    timestamp_to_minutes_with_tz(timestamp, string) int; duration_to_minutes(duration) int
.getMonth: timestamp_to_month(timestamp) int; timestamp_to_month_with_tz(timestamp, string) int
.getSeconds: timestamp_to_seconds(timestamp) int; timestamp_to_seconds_tz(timestamp, string) int;
    duration_to_seconds(duration) int
.hasValue: optional_hasValue(?(V)) bool
.indexOf: list_a_index_of_int(list(A), A) int; string_index_of_string(string, string) int;
    string_index_of_string_int(string, string, int) int
int: int64_to_int64(int) int; double_to_int64(double) int; duration_to_int64(duration) int;
    string_to_int64(string) int; timestamp_to_int64(timestamp) int; uint64_to_int64(uint) int
ip.isCanonical: ip_is_canonical(string) bool
.join: list_join(list(string)) string; list_join_string(list(string), string) string
.last: list_last(list(V)) ?(V)
.lastIndexOf: list_a_last_index_of_int(list(A), A) int;
    string_last_index_of_string(string, string) int;
    string_last_index_of_string_int(string, string, int) int
lists.range: lists_range(int) list(int)
.lowerAscii: string_lower_ascii(string) string
matches: matches(string, string) bool
.matches: matches_string(string, string) bool
optional.none: optional_none() ?(V)
optional.of: optional_of(V) ?(V)
optional.ofNonZeroValue: optional_ofNonZeroValue(V) ?(V)
optional.unwrap: optional_unwrap(list(?(V))) list(V)
.or: optional_or_optional(?(V), ?(V)) ?(V)
.orValue: optional_orValue_value(?(V), V) V
.replace: string_replace_string_string(string, string, string) string;
    string_replace_string_string_int(string, string, string, int) string
.reverse: list_reverse(list(T)) list(T)
sets.contains: list_sets_contains_list(list(T), list(T)) bool
sets.equivalent: list_sets_equivalent_list(list(T), list(T)) bool
sets.intersects: list_sets_intersects_list(list(T), list(T)) bool
size: size_bytes(bytes) int; size_list(list(A)) int; size_map(map(A, B)) int;
    size_string(string) int
.size: bytes_size(bytes) int; list_size(list(A)) int; map_size(map(A, B)) int;
    string_size(string) int
.slice: list_slice(list(T), int, int) list(T)
.sort: list_int_sort(list(int)) list(int); list_uint_sort(list(uint)) list(uint);
    list_double_sort(list(double)) list(double); list_bool_sort(list(bool)) list(bool);
    list_google.protobuf.Duration_sort(list(duration)) list(duration);
    list_google.protobuf.Timestamp_sort(list(timestamp)) list(timestamp);
    list_string_sort(list(string)) list(string); list_bytes_sort(list(bytes)) list(bytes)
.split: string_split_string(string, string) list(string);
    string_split_string_int(string, string, int) list(string)
.startsWith: starts_with_string(string, string) bool
string: string_to_string(string) string; bool_to_string(bool) string;
    bytes_to_string(bytes) string; double_to_string(double) string;
    duration_to_string(duration) string; int64_to_string(int) string;
    timestamp_to_string(timestamp) string; uint64_to_string(uint) string;
    ip_to_string(net.IP) string; cidr_to_string(net.CIDR) string
strings.quote: strings_quote(string) string
.substring: string_substring_int(string, int) string;
    string_substring_int_int(string, int, int) string
timestamp: timestamp_to_timestamp(timestamp) timestamp; int64_to_timestamp(int) timestamp;
    string_to_timestamp(string) timestamp
.trim: string_trim(string) string
type: type(A) type(A)
uint: uint64_to_uint64(uint) uint; double_to_uint64(double) uint; int64_to_uint64(int) uint;
    string_to_uint64(string) uint
.unwrapOpt: optional_unwrapOpt(list(?(V))) list(V)
.upperAscii: string_upper_ascii(string) string
.value: optional_value(?(V)) V
"""
_KUBERNETES: Final = r"""
.add: quantity_add($Quantity, $Quantity) $Quantity; quantity_add_int($Quantity, int) $Quantity
.allowed: decision_allowed(%Decision) bool
.asApproximateFloat: quantity_get_float($Quantity) double
.asInteger: quantity_get_int($Quantity) int
.check: pathcheck_check(%PathCheck, string) %Decision;
    resourcecheck_check(%ResourceCheck, string) %Decision
cidr: string_to_cidr(string) net.CIDR
.compareTo: quantity_compare_to($Quantity, $Quantity) int; semver_compare_to($Semver, $Semver) int
.containsCIDR: cidr_contains_cidr_string(net.CIDR, string) bool;
    cidr_contains_cidr(net.CIDR, net.CIDR) bool
.containsIP: cidr_contains_ip_string(net.CIDR, string) bool;
    cidr_contains_ip_ip(net.CIDR, net.IP) bool
.error: decision_error(%Decision) string
.errored: decision_errored(%Decision) bool
.family: ip_family(net.IP) int
.fieldSelector: authorizer_fieldselector(%ResourceCheck, string) %ResourceCheck
.find: string_find_string(string, string) string
.findAll: string_find_all_string(string, string) list(string);
    string_find_all_string_int(string, string, int) list(string)
format.byte: format.byte() $NamedFormat
format.date: format.date() $NamedFormat
format.datetime: format.datetime() $NamedFormat
format.dns1035Label: format.dns1035Label() $NamedFormat
format.dns1035LabelPrefix: format.dns1035LabelPrefix() $NamedFormat
format.dns1123Label: format.dns1123Label() $NamedFormat
format.dns1123LabelPrefix: format.dns1123LabelPrefix() $NamedFormat
format.dns1123Subdomain: format.dns1123Subdomain() $NamedFormat
format.dns1123SubdomainPrefix: format.dns1123SubdomainPrefix() $NamedFormat
format.labelValue: format.labelValue() $NamedFormat
format.named: format-named(string) ?($NamedFormat)
format.qualifiedName: format.qualifiedName() $NamedFormat
format.uri: format.uri() $NamedFormat
format.uuid: format.uuid() $NamedFormat
.getEscapedPath: url_get_escaped_path($URL) string
.getHost: url_get_host($URL) string
.getHostname: url_get_hostname($URL) string
.getPort: url_get_port($URL) string
.getQuery: url_get_query($URL) map(string, list(string))
.getScheme: url_get_scheme($URL) string
.group: authorizer_group(%Authorizer, string) %GroupCheck
ip: string_to_ip(string) net.IP
.ip: cidr_ip(net.CIDR) net.IP
isCIDR: is_cidr(string) bool
.isGlobalUnicast: ip_is_global_unicast(net.IP) bool
.isGreaterThan: quantity_is_greater_than($Quantity, $Quantity) bool;
    semver_is_greater_than($Semver, $Semver) bool
isIP: is_ip(string) bool
.isInteger: quantity_is_integer($Quantity) bool
.isLessThan: quantity_is_less_than($Quantity, $Quantity) bool;
    semver_is_less_than($Semver, $Semver) bool
.isLinkLocalMulticast: ip_is_link_local_multicast(net.IP) bool
.isLinkLocalUnicast: ip_is_link_local_unicast(net.IP) bool
.isLoopback: ip_is_loopback(net.IP) bool
isQuantity: is_quantity_string(string) bool
isSemver: is_semver_string(string) bool; is_semver_string_bool(string, bool) bool
.isSorted: list_int_is_sorted_bool(list(int)) bool; list_uint_is_sorted_bool(list(uint)) bool;
    list_double_is_sorted_bool(list(double)) bool; list_bool_is_sorted_bool(list(bool)) bool;
    list_duration_is_sorted_bool(list(duration)) bool;
    list_timestamp_is_sorted_bool(list(timestamp)) bool;
    list_string_is_sorted_bool(list(string)) bool; list_bytes_is_sorted_bool(list(bytes)) bool
isURL: is_url_string(string) bool
.isUnspecified: ip_is_unspecified(net.IP) bool
jsonpatch.escapeKey: string_jsonpatch_escapeKey_string(string) string
.labelSelector: authorizer_labelselector(%ResourceCheck, string) %ResourceCheck
.major: semver_major($Semver) int
.masked: cidr_masked(net.CIDR) net.CIDR
.max: list_int_max_int(list(int)) int; list_uint_max_uint(list(uint)) uint;
    list_double_max_double(list(double)) double; list_bool_max_bool(list(bool)) bool;
    list_duration_max_duration(list(duration)) duration;
    list_timestamp_max_timestamp(list(timestamp)) timestamp;
    list_string_max_string(list(string)) string; list_bytes_max_bytes(list(bytes)) bytes
.min: list_int_min_int(list(int)) int; list_uint_min_uint(list(uint)) uint;
    list_double_min_double(list(double)) double; list_bool_min_bool(list(bool)) bool;
    list_duration_min_duration(list(duration)) duration;
    list_timestamp_min_timestamp(list(timestamp)) timestamp;
    list_string_min_string(list(string)) string; list_bytes_min_bytes(list(bytes)) bytes
.minor: semver_minor($Semver) int
.name: resourcecheck_name(%ResourceCheck, string) %ResourceCheck
.namespace: resourcecheck_namespace(%ResourceCheck, string) %ResourceCheck
.patch: semver_patch($Semver) int
.path: authorizer_path(%Authorizer, string) %PathCheck
.prefixLength: cidr_prefix_length(net.CIDR) int
quantity: string_to_quantity(string) $Quantity
.reason: decision_reason(%Decision) string
.resource: groupcheck_resource(%GroupCheck, string) %ResourceCheck
semver: string_to_semver(string) $Semver; string_bool_to_semver(string, bool) $Semver
.serviceAccount: authorizer_serviceaccount(%Authorizer, string, string) %Authorizer
sign: quantity_sign($Quantity) int
.sub: quantity_sub($Quantity, $Quantity) $Quantity; quantity_sub_int($Quantity, int) $Quantity
.subresource: resourcecheck_subresource(%ResourceCheck, string) %ResourceCheck
.sum: list_int_sum_int(list(int)) int; list_uint_sum_uint(list(uint)) uint;
    list_double_sum_double(list(double)) double;
    list_duration_sum_duration(list(duration)) duration
url: string_to_url(string) $URL
.validate: format-validate($NamedFormat, string) ?(list(string))
"""


class Signature(Struct, frozen=True):
    """An overload of a function, as the checker uses it."""

    id: str
    taken: tuple[CelType, ...]
    result: CelType
    is_member: bool


@cache
def signatures() -> dict[str, tuple[Signature, ...]]:
    """Return the overloads of all functions, keyed by function name."""
    found: dict[str, tuple[Signature, ...]] = {}
    for name, text in _LINE.findall(_LANGUAGE + _KUBERNETES):
        own, is_member = name.removeprefix("."), name.startswith(".")
        pieces = " ".join(text.split()).split("; ")
        made = tuple(_signature(piece, is_member=is_member) for piece in pieces)
        found[own] = found.get(own, ()) + made
    return found


def _signature(text: str, *, is_member: bool) -> Signature:
    matched = _OVERLOAD.fullmatch(text)
    if matched is None:
        raise ValueError(f"no signature: {text}")
    own, taken, result = matched.groups()
    return Signature(own, parse_types(_long(taken)), parse_type(_long(result)), is_member)


def _long(text: str) -> str:
    for short, meant in _SHORT:
        text = text.replace(short, meant)
    return text
