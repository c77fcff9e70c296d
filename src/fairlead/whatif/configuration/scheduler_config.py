"""Reads a KubeSchedulerConfiguration in v1 or an older version.

This module reads the file and checks its form; `engine.configuration` interprets it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, Final

from msgspec.structs import replace as replace_struct

from fairlead.engine.configuration.check import check_profiles
from fairlead.engine.configuration.default_config import default_config
from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.configuration.extender import extender_of
from fairlead.engine.configuration.old_versions import OLD_FORMS, AlphaForm, alpha_as_v1, beta_as_v1
from fairlead.engine.configuration.release import CURRENT, Release
from fairlead.engine.configuration.translation import (
    ARGS,
    UserPluginSource,
    scheduler_config,
)
from fairlead.engine.configuration.v1 import ConfigurationForm, ExtenderForm, PluginsForm
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.stored_configuration import KIND
from fairlead.whatif.configuration.user_plugin import OPTION, UserPlugins, user_plugins
from fairlead.whatif.input.document import Document, read_one
from fairlead.whatif.input.error import InputError, one_line
from fairlead.whatif.input.given_plugin import PluginSource
from fairlead.whatif.input.strict_form import decode_strictly

ALLOW_EXTENDERS: Final = "--allow-extenders"
_ARGS: Final = "args"
_ADDRESS_MAX: Final = 200  # characters
GROUP: Final = "kubescheduler.config.k8s.io"
V1: Final = f"{GROUP}/v1"
ALPHA: Final = f"{GROUP}/v1alpha1"
_OLD: Final = {f"{GROUP}/{version}": form for version, form in OLD_FORMS.items()}
# Splits an error about a field within the arguments: "scoringStrategy.type: Unsupported value".
_OF_FIELD: Final = re.compile(r"(?P<field>[A-Za-z][\w.\[\]]*): (?P<problem>.*)", re.DOTALL)


def read_scheduler_config(
    file: str | PathLike[str] | Document | None,
    plugins: UserPlugins | Iterable[PluginSource] | None = None,
    release: Release = CURRENT,
    *,
    allow_extenders: bool = False,
) -> SchedulerConfig:
    """Return the configuration in `file` (None for the default) plus users' `plugins`.

    Each of `plugins` is a class or a value of --plugin. Unset fields have the defaults of
    `release`. If `allow_extenders` is not set, a file with extenders is refused, because extenders
    receive the cluster's pods. Raises InputError.
    """
    plugins = user_plugins("read_scheduler_config", plugins)
    if file is None:
        config = default_config(release, plugins.factories())
        profiles = tuple(plugins.placed(profile) for profile in config.profiles)
        return _served(replace(config, profiles=profiles), OPTION, only_profile=True)
    document = file if isinstance(file, Document) else read_one(fspath(file), KIND)
    form, path = _form(document), document.source
    only_profile = document.value["apiVersion"] == ALPHA
    try:
        plugin_source = _user_plugin_source(path, plugins)
        config = scheduler_config(form, plugin_source, release, only_profile=only_profile)
    except ConfigurationError as cause:
        raise InputError(path, cause.problem, field=cause.field) from None
    if form.extenders and not allow_extenders:
        raise _refused_extender(path, form.extenders[0])
    _check_certificates(path, form.extenders)
    mentioned = {name for each in form.profiles for name in _mentioned(each.plugins)}
    profiles = tuple(plugins.placed(profile, mentioned) for profile in config.profiles)
    return _served(replace(config, profiles=profiles), path, only_profile=only_profile)


def _refused_extender(path: str, extender: ExtenderForm) -> InputError:
    """Return the error that `extender` causes if --allow-extenders is not set."""
    address = one_line(extender.url_prefix, _ADDRESS_MAX)
    problem = f"pods would be sent to {address}; {ALLOW_EXTENDERS} lets extenders be called"
    return InputError(path, problem, field="extenders")


def _served(config: SchedulerConfig, source: str, *, only_profile: bool) -> SchedulerConfig:
    try:
        check_profiles(config, only_profile=only_profile)
    except ConfigurationError as cause:
        raise InputError(source, cause.problem, field=cause.field) from None
    return config


def _form(document: Document) -> ConfigurationForm:
    """Return the file converted to v1. Raises InputError."""
    value = document.value if isinstance(document.value, dict) else {}
    version = value.get("apiVersion")
    if version not in (V1, *_OLD, ALPHA):
        known = ", ".join((V1, *_OLD, ALPHA))
        raise InputError(document.source, f"must be one of {known}", field="apiVersion")
    if value.get("kind") != KIND:
        raise InputError(document.source, f"must be {KIND}", field="kind")
    document = replace_struct(document, value=_without_null_members(value))
    try:
        if version in _OLD:
            return beta_as_v1(decode_strictly(document, _OLD[version]))
        if version == ALPHA:
            return alpha_as_v1(decode_strictly(document, AlphaForm))
    except ConfigurationError as cause:
        raise InputError(document.source, cause.problem, field=cause.field) from None
    return decode_strictly(document, ConfigurationForm)


def _without_null_members(value: Any) -> Any:
    """Return `value` without null members: to kube-scheduler, a null is a field that is not set.

    The arguments of plugins are kept as they are, because users' plugins define their meaning.
    """
    if isinstance(value, dict):
        return {
            name: one if name == _ARGS else _without_null_members(one)
            for name, one in value.items()
            if one is not None
        }
    return [_without_null_members(one) for one in value] if isinstance(value, list) else value


def _user_plugin_source(path: str, plugins: UserPlugins) -> UserPluginSource:
    def usual_weight(name: str) -> int | None:
        found = plugins.find(name)
        return None if found is None else found.weight

    def check_args(field: str, plugin: str, args: Mapping[str, Any]) -> None:
        """Raise InputError for arguments that `plugin` does not accept."""
        try:
            decode_strictly(Document(path, dict(args)), ARGS[plugin], field)
        except InputError as refusal:
            inner = _OF_FIELD.fullmatch(refusal.problem)
            if inner is None or refusal.field != field:
                raise
            raise InputError(path, inner["problem"], field=f"{field}.{inner['field']}") from None

    return UserPluginSource(usual_weight, check_args, plugins.factories)


def _check_certificates(path: str, forms: tuple[ExtenderForm, ...]) -> None:
    """Raise InputError if a certificate or a key of an extender is unusable."""
    if not forms:
        return
    # The HTTP client is expensive to import and needed only for extenders.
    from fairlead.worlds.extender.client import TlsError, tls_context  # noqa: PLC0415

    for number, form in enumerate(forms):
        where = f"extenders[{number}]"
        try:
            tls_context(extender_of(where, form))
        except TlsError as cause:
            field = f"{where}.tlsConfig.{cause.field}"
            raise InputError(path, cause.problem, field=field) from None


def _mentioned(form: PluginsForm) -> Iterator[str]:
    """Yield the names of all plugins that some extension point enables or disables."""
    for point in PluginsForm.__struct_fields__:
        one = getattr(form, point)
        yield from (entry.name for entry in (*one.enabled, *one.disabled))
