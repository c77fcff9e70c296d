"""KubeSchedulerConfiguration v1, field by field.

`parallelism`, `leaderElection`, `clientConnection` and the fields about profiling and the cache do
not affect decisions. These fields are declared here because the reader refuses unknown fields and
values of the wrong type.

upstream: staging/src/k8s.io/kube-scheduler/config/v1/types.go
"""

from __future__ import annotations

from typing import Any

import msgspec


class V1Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The base of all forms below. Fields have camelCase names; unknown fields are refused."""


class PluginForm(V1Form, frozen=True, kw_only=True):
    """One entry of `enabled` or `disabled`."""

    name: str
    weight: int = 0


class PluginSetForm(V1Form, frozen=True, kw_only=True):
    """The plugins that are enabled and disabled at one extension point."""

    enabled: tuple[PluginForm, ...] = ()
    disabled: tuple[PluginForm, ...] = ()


class PluginsForm(V1Form, frozen=True, kw_only=True):
    """The field `profiles[].plugins`: the plugins at each of upstream's extension points."""

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


class PluginConfigForm(V1Form, frozen=True, kw_only=True):
    """One entry of `profiles[].pluginConfig`."""

    name: str
    args: dict[str, Any] = {}


class ProfileForm(V1Form, frozen=True, kw_only=True):
    """One entry of `profiles`."""

    scheduler_name: str | None = None
    percentage_of_nodes_to_score: int | None = None
    plugins: PluginsForm = PluginsForm()
    plugin_config: tuple[PluginConfigForm, ...] = ()


class ManagedResourceForm(V1Form, frozen=True, kw_only=True):
    """A resource that an extender manages: one entry of `extenders[].managedResources`."""

    name: str
    ignored_by_scheduler: bool = False


class TlsForm(V1Form, frozen=True, kw_only=True):
    """The field `extenders[].tlsConfig`; the file has certData, keyData and caData in base64."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderForm(V1Form, frozen=True, kw_only=True):
    """One entry of `extenders`."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(name="enableHTTPS", default=False)
    tls_config: TlsForm | None = None
    http_timeout: str | None = None
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResourceForm, ...] = ()
    ignorable: bool = False


class LeaderElectionForm(V1Form, frozen=True, kw_only=True):
    """The field `leaderElection`. Empty names and durations of 0 mean the defaults.

    upstream: component-base/config/v1alpha1/types.go: LeaderElectionConfiguration
    """

    leader_elect: bool | None = None
    lease_duration: str | None = None
    renew_deadline: str | None = None
    retry_period: str | None = None
    resource_lock: str = ""
    resource_name: str = ""
    resource_namespace: str = ""


class ClientConnectionForm(V1Form, frozen=True, kw_only=True):
    """The field `clientConnection`.

    upstream: component-base/config/v1alpha1/types.go: ClientConnectionConfiguration
    """

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = ""
    qps: float | None = None
    burst: int | None = None


class ConfigurationForm(V1Form, frozen=True, kw_only=True):
    """A KubeSchedulerConfiguration file.

    Only Fairlead reads the field `featureGates`; kube-scheduler has the flag --feature-gates
    instead.
    """

    api_version: str = ""
    kind: str = ""
    parallelism: int | None = None
    leader_election: LeaderElectionForm | None = None
    client_connection: ClientConnectionForm | None = None
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    delay_cache_until_active: bool | None = None
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int | None = None
    pod_max_backoff_seconds: int | None = None
    profiles: tuple[ProfileForm, ...] = ()
    extenders: tuple[ExtenderForm, ...] = ()
    feature_gates: dict[str, bool] = {}
