"""Reads and validates the extenders of a configuration.

upstream: pkg/scheduler/apis/config/validation/validation.go: validateExtenders;
pkg/scheduler/scheduler.go: buildExtenders
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from fairlead.api.label import label_key_problems
from fairlead.api.resource_name import is_extended_resource
from fairlead.api.text.field_problem import invalid
from fairlead.api.timestamp import parse_duration
from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.configuration.v1 import ExtenderForm, TlsForm
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.scheduling.extender.extender import TIMEOUT_DEFAULT, Extender, ExtenderTls

_URL: Final = re.compile(r"(?P<scheme>https?)://[^/?#\s]+[^?#\s]*")


def extenders_of(forms: Sequence[ExtenderForm]) -> tuple[Extender, ...]:
    """Return the extenders in the order in which they are called; ignorable extenders come last.

    Raises ConfigurationError if an extender is invalid.
    """
    found = [extender_of(f"extenders[{number}]", form) for number, form in enumerate(forms)]
    _refuse_shared_resources(forms)
    binders = sum(bool(extender.bind_verb) for extender in found)
    if binders > 1:
        problem = invalid(
            f"found {binders} extenders implementing bind", "only one extender can implement bind"
        )
        raise ConfigurationError("extenders", problem)
    return tuple(sorted(found, key=lambda extender: extender.ignorable))


def extender_of(where: str, form: ExtenderForm) -> Extender:
    """Return the extender that `form` describes; `where` is its path in the file.

    Raises ConfigurationError if the extender is invalid.
    """
    _check_address(where, form)
    if form.prioritize_verb and form.weight <= 0:
        problem = invalid(form.weight, "must have a positive weight applied to it")
        raise ConfigurationError(f"{where}.weight", problem)
    return Extender(
        url_prefix=form.url_prefix,
        filter_verb=form.filter_verb,
        prioritize_verb=form.prioritize_verb,
        preempt_verb=form.preempt_verb,
        bind_verb=form.bind_verb,
        weight=form.weight,
        timeout=_timeout(f"{where}.httpTimeout", form.http_timeout),
        node_cache_capable=form.node_cache_capable,
        managed_resources=tuple(resource.name for resource in form.managed_resources),
        ignorable=form.ignorable,
        enable_https=form.enable_https,
        tls=None if form.tls_config is None else _tls(f"{where}.tlsConfig", form.tls_config),
    )


def ignored_resources(forms: Sequence[ExtenderForm]) -> tuple[str, ...]:
    """Return the names of the resources that extenders manage and the scheduler ignores."""
    return tuple(
        resource.name
        for form in forms
        for resource in form.managed_resources
        if resource.ignored_by_scheduler
    )


def _check_address(where: str, form: ExtenderForm) -> None:
    found = _URL.fullmatch(form.url_prefix)
    field = f"{where}.urlPrefix"
    if found is None:
        raise ConfigurationError(
            field, invalid(form.url_prefix, "must be an http or https URL without a query")
        )
    if form.enable_https and found["scheme"] == "http":
        problem = invalid(form.url_prefix, "must begin with https:// where enableHTTPS is true")
        raise ConfigurationError(field, problem)


def _timeout(field: str, text: str | None) -> DurationNs:
    if text is None:
        return TIMEOUT_DEFAULT
    try:
        timeout = parse_duration(text)
    except ValueError as cause:
        raise ConfigurationError(field, str(cause)) from None
    if timeout < 0:
        raise ConfigurationError(field, invalid(text, "must not be negative"))
    return timeout or TIMEOUT_DEFAULT


def _tls(where: str, form: TlsForm) -> ExtenderTls:
    """Return the TLS settings that `form` describes; `where` is its path in the file.

    Raises ConfigurationError if settings exclude each other, or a key or certificate is missing.
    upstream: client-go/transport/transport.go: TLSConfigFor
    """
    if form.insecure and (form.ca_file or form.ca_data):
        problem = "specifying a root certificates file with the insecure flag is not allowed"
        raise ConfigurationError(f"{where}.insecure", problem)
    if (form.key_file or form.key_data) and not (form.cert_file or form.cert_data):
        raise ConfigurationError(f"{where}.certFile", "is required beside a key")
    if (form.cert_file or form.cert_data) and not (form.key_file or form.key_data):
        raise ConfigurationError(f"{where}.keyFile", "is required beside a certificate")
    return ExtenderTls(
        insecure=form.insecure,
        server_name=form.server_name,
        cert_file=form.cert_file,
        key_file=form.key_file,
        ca_file=form.ca_file,
        cert_data=form.cert_data,
        key_data=form.key_data,
        ca_data=form.ca_data,
    )


def _refuse_shared_resources(forms: Sequence[ExtenderForm]) -> None:
    seen: dict[str, None] = {}
    for number, form in enumerate(forms):
        for place, resource in enumerate(form.managed_resources):
            field = f"extenders[{number}].managedResources[{place}].name"
            for problem in label_key_problems(resource.name):
                raise ConfigurationError(field, invalid(resource.name, problem))
            if not is_extended_resource(resource.name):
                problem = invalid(resource.name, "is an invalid extended resource name")
                raise ConfigurationError(field, problem)
            if resource.name in seen:
                problem = invalid(resource.name, "duplicate extender managed resource name")
                raise ConfigurationError(field, problem)
            seen[resource.name] = None
