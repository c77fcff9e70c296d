"""Runs `fairlead extender`, from its options to its exit code."""

from __future__ import annotations

import re
from typing import Final

from fairlead.apiserver.registry.store import Store
from fairlead.cli import exit_code
from fairlead.cli.options.listen import listen_address, open_listener
from fairlead.cli.options.parameter import Names
from fairlead.cli.output.result_file import print_empty_files
from fairlead.engine.configuration.check import check_profiles
from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.extender_backend import ExtenderBackend
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.configuration.stored_configuration import chosen_configuration
from fairlead.whatif.configuration.user_plugin import OPTION, UserPlugins
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.snapshot import load_objects, read_snapshot
from fairlead.worlds.extender.address import Address
from fairlead.worlds.extender.extender_verbs import ExtenderVerbs
from fairlead.worlds.extender.server import serve_extender
from fairlead.worlds.seeded_ids import SeededIds

API_SERVER: Final = "--api-server"
_URL: Final = re.compile(r"https?://[^/?#\s]+[^?#\s]*")
# Plugins that every profile needs, with their weights.
_REQUIRED: Final = (("PrioritySort", 0), ("DefaultBinder", 0))


def serve(
    config: str | None,
    plugins: Names,
    snapshot: str | None,
    listen: str,
    *,
    api_server: str | None,
    beyond_loopback: bool,
) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code.

    Raises InputError if an argument cannot be used, for example if the port is not free.
    """
    address = listen_address(listen, beyond_loopback=beyond_loopback)
    if api_server is not None and not _URL.fullmatch(api_server):
        raise InputError(API_SERVER, "must be an http or https URL", object_name=api_server)
    verbs = ExtenderVerbs(_read_backend(config, UserPlugins(plugins), snapshot))
    with open_listener(address) as listening:
        at = Address(address.host, listening.getsockname()[1])

        def say_ready() -> None:
            print(f"listening on http://{at}", flush=True)

        serve_extender(verbs, at, listening, api_server=api_server or "", on_ready=say_ready)
    return exit_code.SUCCESS


def _read_backend(
    config: str | None, plugins: UserPlugins, snapshot: str | None
) -> ExtenderBackend:
    """Return the backend with the plugins of `config` and `plugins`, and the objects of `snapshot`.

    If `config` is None and `plugins` names plugins, only these plugins run, because the calling
    kube-scheduler already runs Kubernetes' own plugins. If `config` is None and `plugins` names no
    plugin, the default plugins run. Raises InputError.
    """
    dump = None if snapshot is None else read_snapshot(snapshot, is_copied=True)
    print_empty_files(() if dump is None else dump.empty_files)
    scheduler = _without_defaults(plugins) if config is None and plugins.named else None
    if scheduler is None:
        manifests = () if dump is None else dump.manifests
        file = config and chosen_configuration("--config", config, manifests)
        scheduler = read_scheduler_config(file, plugins, allow_extenders=True)
    if scheduler.extenders:
        problem = "an extender cannot call extenders"
        raise InputError(config or "", problem, field="extenders")
    if dump is None:
        return ExtenderBackend(scheduler)
    return ExtenderBackend(scheduler, load_objects(dump, Store(SeededIds(0))))


def _without_defaults(plugins: UserPlugins) -> SchedulerConfig:
    profile = plugins.placed(Profile(plugins=_REQUIRED))
    config = SchedulerConfig((profile,), out_of_tree=plugins.factories())
    try:
        check_profiles(config, only_profile=True)
    except ConfigurationError as cause:
        raise InputError(OPTION, cause.problem, field=cause.field) from None
    return config
