"""Validates admission webhook configurations (validating and mutating).

upstream: pkg/apis/admissionregistration/validation/validation.go,
apiserver/pkg/util/webhook/validation.go
"""

from __future__ import annotations

import json
import re
from typing import Final

from fairlead.api.facts import values_of
from fairlead.api.json import Json
from fairlead.apiserver.validation.admissionregistration.expression import (
    BOOLEAN,
    ExpressionVariables,
    check_expression,
)
from fairlead.apiserver.validation.admissionregistration.options import NEW, ValidationOptions
from fairlead.apiserver.validation.meta.field import (
    Causes,
    duplicate,
    invalid,
    not_supported,
    repeated_indexes,
    required,
)
from fairlead.apiserver.validation.meta.field_facts import check_fields
from fairlead.apiserver.validation.meta.format import (
    check_qualified_name,
    dns_1035_problems,
    dns_subdomain_problems,
    label_selector,
    too_many,
)
from fairlead.apiserver.validation.meta.selector import check_label_selector

_WEBHOOK: Final = "admissionregistration.v1.MutatingWebhook"
FAILURE_POLICIES: Final = values_of(_WEBHOOK, "failurePolicy")
MATCH_POLICIES: Final = values_of(_WEBHOOK, "matchPolicy")
SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
REVIEWS: Final = ("v1", "v1beta1")
CONDITIONS_MAX: Final = 64
_URL: Final = re.compile(  # The parts of a URL (RFC 3986) that the rules check separately.
    r"(?:(?P<scheme>[A-Za-z][-+.A-Za-z0-9]*):)?"
    r"(?://(?:(?P<user>[^/?#@]*)@)?(?P<host>[^/?#@\s]*))?"
    r"(?P<path>(?:/|(?![^/]*:))[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?"
)
_FORM: Final = "; desired format: https://host[/path]"


def check_webhooks(obj: Json, options: ValidationOptions = NEW) -> Causes:
    """Yield the errors of a MutatingWebhookConfiguration or ValidatingWebhookConfiguration."""
    names: dict[str, None] = {}
    for index, hook in enumerate(obj.get("webhooks") or ()):
        field = f"webhooks[{index}]"
        yield from _check_webhook(field, hook, options)
        yield from check_reviews(
            f"{field}.admissionReviewVersions",
            hook.get("admissionReviewVersions") or [],
            requires_known=options.require_recognized_review_version,
        )
        name = hook.get("name", "")
        if options.require_unique_names and name and name in names:
            yield duplicate(f"{field}.name", name)
        names[name] = None


def _check_webhook(field: str, hook: Json, options: ValidationOptions) -> Causes:
    yield from _check_full_name(f"{field}.name", hook.get("name", ""))
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from check_rule(f"{field}.rules[{index}]", rule)
    yield from check_fields(field, _WEBHOOK, hook, "failurePolicy", "matchPolicy")
    yield from _check_side_effects(field, hook, options)
    yield from check_fields(field, _WEBHOOK, hook, "timeoutSeconds")
    is_strict = not options.allow_invalid_selector_values
    for key in ("namespaceSelector", "objectSelector"):
        selector = label_selector(hook.get(key))
        yield from check_label_selector(f"{field}.{key}", selector, strict=is_strict)
    yield from check_fields(field, _WEBHOOK, hook, "reinvocationPolicy")
    yield from check_client(f"{field}.clientConfig", hook.get("clientConfig") or {})
    known = ExpressionVariables(is_compiled=options.compile_expressions)
    conditions = hook.get("matchConditions") or []
    yield from check_conditions(f"{field}.matchConditions", conditions, known)


def _check_side_effects(field: str, hook: Json, options: ValidationOptions) -> Causes:
    if options.require_no_side_effects:
        yield from check_fields(field, _WEBHOOK, hook, "sideEffects")
        return
    if hook.get("sideEffects") is None:
        yield required(f"{field}.sideEffects", f"must specify one of {', '.join(SIDE_EFFECTS)}")
    yield from check_enum(f"{field}.sideEffects", hook.get("sideEffects"), SIDE_EFFECTS)


def check_enum(field: str, value: str | None, known: tuple[str, ...]) -> Causes:
    """Yield an error if `value` is present and not one of `known`."""
    if value is not None and value not in known:
        yield not_supported(field, value, known)


def _check_full_name(field: str, name: str) -> Causes:
    # upstream: apimachinery/pkg/util/validation/validation.go:IsFullyQualifiedName
    if not name:
        yield required(field)
        return
    problems = dns_subdomain_problems(name)
    if problems:
        yield invalid(field, name, ",".join(problems))
    elif name.count(".") < 2:
        why = "should be a domain with at least three segments separated by dots"
        yield invalid(field, name, why)


def check_reviews(
    field: str, versions: list[str], *, bare: bool = False, requires_known: bool = True
) -> Causes:
    """Yield the errors of admissionReviewVersions.

    If `requires_known` is True, at least one version must be supported. The error for an empty list
    contains the supported versions, unless `bare` is True.
    """
    known = ", ".join(REVIEWS)
    if not versions:
        yield required(field, "" if bare else f"must specify one of {known}")
        return
    again = repeated_indexes(versions)
    for index, version in enumerate(versions):
        if index in again:
            yield invalid(f"{field}[{index}]", version, "duplicate version")
            continue
        for problem in dns_1035_problems(version):
            yield invalid(f"{field}[{index}]", version, problem)
    if requires_known and not any(version in REVIEWS for version in versions):
        yield invalid(field, versions, f"must include at least one of {known}")


def check_rule(field: str, rule: Json) -> Causes:
    """Yield the errors of a rule, which matches requests by resource, operation and scope."""
    operations = rule.get("operations") or []
    where = f"{field}.operations"
    if not operations:
        yield required(where)
    if len(operations) > 1 and "*" in operations:
        yield invalid(where, operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        yield from check_enum(f"{where}[{index}]", operation, OPERATIONS)
    for key, others in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(key) or []
        if not values:
            yield required(f"{field}.{key}")
        if len(values) > 1 and "*" in values:
            why = f"if '*' is present, must not specify other {others}"
            yield invalid(f"{field}.{key}", values, why)
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            yield required(f"{field}.apiVersions[{index}]")
    yield from _check_resources(f"{field}.resources", rule.get("resources") or [])
    yield from check_fields(field, "admissionregistration.v1.RuleWithOperations", rule, "scope")


def _check_resources(field: str, resources: list[str]) -> Causes:
    if not resources:
        yield required(field)
    whole: dict[str, None] = {}  # resources with all of their subresources
    everywhere: dict[str, None] = {}  # subresources of all resources
    for index, text in enumerate(resources):
        if not text:
            yield required(f"{field}[{index}]")
        name, slash, part = text.partition("/")
        if not slash:
            continue
        if name in whole:
            why = f"if '{name}/*' is present, must not specify {text}"
            yield invalid(f"{field}[{index}]", text, why)
        if part in everywhere:
            why = f"if '*/{part}' is present, must not specify {text}"
            yield invalid(f"{field}[{index}]", text, why)
        if part == "*":
            whole[name] = None
        if name == "*":
            everywhere[part] = None
    yield from _check_wildcards(field, resources)


def _check_wildcards(field: str, resources: list[str]) -> Causes:
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(field, resources, "if '*/*' is present, must not specify other resources")
    plain = [text for text in resources if "/" not in text]
    if "*" in plain and plain[-1] != "*":
        why = "if '*' is present, must not specify other resources without subresources"
        yield invalid(field, resources, why)


def check_client(field: str, client: Json) -> Causes:
    """Yield the errors of a clientConfig, which has either a URL or a Service."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(field, "exactly one of url or service is required")
    elif url is not None:
        yield from _check_url(f"{field}.url", url)
    elif service is not None:
        yield from check_webhook_service(f"{field}.service", service)


def _check_url(field: str, text: str) -> Causes:
    parts = _URL.fullmatch(text)
    if parts is None:
        yield required(field, f"url must be a valid URL: {_not_url(text)}{_FORM}")
        return
    scheme = (parts["scheme"] or "").lower()
    if scheme != "https":
        yield invalid(field, scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not parts["host"]:
        yield invalid(field, "", f"host must be specified{_FORM}")
    if parts["user"] is not None:
        yield invalid(field, parts["user"], "user information is not permitted in the URL")
    if parts["fragment"]:
        yield invalid(field, parts["fragment"], "fragments are not permitted in the URL")
    if parts["query"]:
        yield invalid(field, parts["query"], "query parameters are not permitted in the URL")


def _not_url(text: str) -> str:
    """Return the text of the error that Go's net/url reports for `text`, an invalid URL."""
    if text.startswith(":"):
        why = "missing protocol scheme"
    elif "://" not in text:
        why = "first path segment in URL cannot contain colon"
    else:
        why = "invalid character in host name"
    return f"parse {json.dumps(text, ensure_ascii=False)}: {why}"


def check_webhook_service(field: str, service: Json) -> Causes:
    """Yield the errors of the reference to the Service that serves a webhook."""
    reference = "admissionregistration.v1.ServiceReference"
    yield from check_fields(field, reference, service, "name", "namespace", "port")
    path, where = service.get("path") or "", f"{field}.path"
    if path in ("", "/"):
        return
    if path == "//":
        yield invalid(where, path, "segment[0] may not be empty")
        return
    if not path.startswith("/"):
        yield invalid(where, path, "must start with a '/'")
    for index, step in enumerate(path[1:].removesuffix("/").split("/")):
        if not step:
            yield invalid(where, path, f"segment[{index}] may not be empty")
        for problem in dns_subdomain_problems(step) if step else ():
            yield invalid(where, path, f"segment[{index}]: {problem}")


def check_conditions(
    field: str, conditions: list[Json], known: ExpressionVariables | None = None
) -> Causes:
    """Yield the errors of matchConditions, a list of named CEL expressions.

    `known` says which optional CEL variables are allowed. None means that `authorizer` is the only
    optional variable.
    """
    known = known or ExpressionVariables()
    if len(conditions) > CONDITIONS_MAX:
        yield too_many(field, len(conditions), CONDITIONS_MAX)
    names: dict[str, None] = {}
    for index, condition in enumerate(conditions):
        where = f"{field}[{index}]"
        name = condition.get("name", "")
        if not condition.get("expression", "").strip():
            yield required(f"{where}.expression")
        said = condition.get("expression", "")
        yield from check_expression(f"{where}.expression", said, BOOLEAN, known)
        if not name:
            yield required(f"{where}.name")
            continue
        yield from check_qualified_name(f"{where}.name", name)
        if name in names:
            yield duplicate(f"{where}.name", name)
        names[name] = None
