"""Kubernetes' own functions, with the kinds that they take and give.

`signature` says how a line is read. `$` begins Kubernetes' kinds, `%` those about rights.

upstream: apiserver/pkg/cel/library
"""

from __future__ import annotations

from typing import Final

EXTENSION: Final = r"""
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
