"""The form of a KubeSchedulerConfiguration: every field that its version v1 may have.

Fields of type Any change no decision of the scheduler and are not looked at.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fairlead.framework.profile import DEFAULT_SCHEDULER


class _Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Common settings of the forms below."""


class PluginForm(_Form, frozen=True, kw_only=True):
    """One entry of `enabled` or `disabled`."""

    name: str
    weight: int = 0


class PluginSetForm(_Form, frozen=True, kw_only=True):
    """What is switched on and off at one extension point."""

    enabled: tuple[PluginForm, ...] = ()
    disabled: tuple[PluginForm, ...] = ()


class PluginsForm(_Form, frozen=True, kw_only=True):
    """profiles[].plugins: upstream's extension points."""

    pre_enqueue: PluginSetForm = PluginSetForm()
    queue_sort: PluginSetForm = PluginSetForm()
    pre_filter: PluginSetForm = PluginSetForm()
    filter: PluginSetForm = PluginSetForm()
    post_filter: PluginSetForm = PluginSetForm()
    pre_score: PluginSetForm = PluginSetForm()
    score: PluginSetForm = PluginSetForm()
    reserve: PluginSetForm = PluginSetForm()
    permit: PluginSetForm = PluginSetForm()
    pre_bind: PluginSetForm = PluginSetForm()
    bind: PluginSetForm = PluginSetForm()
    post_bind: PluginSetForm = PluginSetForm()
    multi_point: PluginSetForm = PluginSetForm()


class PluginConfigForm(_Form, frozen=True, kw_only=True):
    """One entry of pluginConfig."""

    name: str
    args: dict[str, Any] = {}


class ProfileForm(_Form, frozen=True, kw_only=True):
    """One profile."""

    scheduler_name: str = DEFAULT_SCHEDULER
    percentage_of_nodes_to_score: int | None = None
    plugins: PluginsForm = PluginsForm()
    plugin_config: tuple[PluginConfigForm, ...] = ()


class ConfigurationForm(_Form, frozen=True, kw_only=True):
    """The file; the fields typed Any change no decision."""

    api_version: str = ""
    kind: str = ""
    parallelism: int | None = None
    leader_election: Any = None
    client_connection: Any = None
    health_probe_bind_address: Any = msgspec.field(name="healthzBindAddress", default=None)
    metrics_bind_address: Any = None
    enable_profiling: Any = None
    enable_contention_profiling: Any = None
    delay_cache_until_active: Any = None
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int | None = None
    pod_max_backoff_seconds: int | None = None
    profiles: tuple[ProfileForm, ...] = ()
    extenders: tuple[Any, ...] = ()
