"""Runs `fairlead run`, from its options to its exit code."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import signal
import ssl
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

import uvloop
from msgspec.structs import replace

from fairlead.api.timestamp import NANOSECONDS_PER_SECOND, format_timestamp
from fairlead.cli import exit_code
from fairlead.cli.commands.run.client_settings import (
    ClientSettings,
    host_name,
    read_client_settings,
)
from fairlead.cli.commands.run.shadow_options import NO_SHADOW, ShadowOptions
from fairlead.cli.options.connection import ConnectionOptions, connection_of, kubeconfigs
from fairlead.cli.options.controller import NodeFlags
from fairlead.cli.options.dashboard import check_dashboard_port, open_dashboard_port
from fairlead.cli.options.listen import listen_address, open_listener
from fairlead.cli.options.log import DecisionLogOptions
from fairlead.cli.options.node_lifecycle import require_effect
from fairlead.cli.options.parameter import Names
from fairlead.cli.options.release import ReleaseOptions
from fairlead.cli.output.atomic_file import write_atomically
from fairlead.cli.output.distinct_outputs import require_distinct
from fairlead.cli.output.line_file import LineFile
from fairlead.client.connection import ConnectionConfig
from fairlead.client.credentials import Credentials
from fairlead.client.error import ConnectionConfigError
from fairlead.client.rest_client import RestClient, usable_credentials
from fairlead.engine.compose import build_running_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.configuration.release import Release
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.issuer import Component
from fairlead.engine.core.reporter import Reporter, SilentReporter
from fairlead.engine.engine import Engine
from fairlead.engine.framework.user_plugin.meter import Meter
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.flag import FlagError, config_of_flags
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.whatif.configuration.batch.argument_note import argument_notes
from fairlead.whatif.configuration.batch.batch_file import override_notes, read_batch_config
from fairlead.whatif.configuration.batch.options import SINGLE_PODS
from fairlead.whatif.configuration.release import read_release
from fairlead.whatif.configuration.scheduler_config import read_scheduler_config
from fairlead.whatif.configuration.stored_configuration import KIND
from fairlead.whatif.configuration.user_plugin import UserPlugins
from fairlead.whatif.input.document import Document, read_one
from fairlead.whatif.input.duration import read_duration
from fairlead.whatif.input.error import InputError
from fairlead.worlds.cluster.http_server import (
    HttpOptions,
    HttpServer,
    PodAnswer,
    PodQuery,
    served,
    tls_context,
)
from fairlead.worlds.cluster.rbac import rbac_manifest
from fairlead.worlds.cluster.resource import (
    BATCH,
    CONTROLLERS,
    NODE_LIFECYCLE,
    SCHEDULER,
    TAINT_EVICTION,
    gated_resources,
    watched_resources,
)
from fairlead.worlds.cluster.runner import ClusterRunner, RunnerOptions, RunningEngine
from fairlead.worlds.cluster.runtime_metrics import RuntimeMetrics
from fairlead.worlds.cluster.shadow import Shadow
from fairlead.worlds.cluster.shadow_record import ShadowRecord
from fairlead.worlds.cluster.telemetry.run_log import LibraryLogHandler, RunLog
from fairlead.worlds.cluster.telemetry.tracer import Tracer
from fairlead.worlds.cluster.version_order import VersionOrder
from fairlead.worlds.extender.address import Address
from fairlead.worlds.extender.extender_caller import reaching
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.log_entry import FORMS, LogEntry
from fairlead.worlds.metrics import SchedulerMetrics
from fairlead.worlds.standard_stream import standard_stream

if TYPE_CHECKING:
    from fairlead.cli.commands.run.dashboard import ClusterDashboard
    from fairlead.worlds.decision_log import Logging

NOTHING: Final = "none"
_BATCH_DEFAULT: Final = "fairlead"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The arguments of `fairlead run`.

    `batch` is (--batch-config, --batch-plugin), `certificate` is (--tls-cert-file,
    --tls-private-key-file), and `dashboard` is (--dashboard, --dashboard-port).
    """

    controllers: Names
    config: str | None
    connection: ConnectionOptions
    plugins: Names
    allow_extenders: bool = False
    batch: tuple[str | None, Names]
    listen: str
    certificate: tuple[str, str]
    dashboard: tuple[bool, int] = (False, 0)
    otlp_endpoint: str = ""
    elects: bool
    writes_events: bool
    flags: NodeFlags
    release: ReleaseOptions
    log: DecisionLogOptions
    log_format: str = "text"
    shadow: ShadowOptions


def run_controllers(request: RunRequest) -> int:
    """Run until a signal or a failure; return the exit code. Raises InputError."""
    check_dashboard_port(request.dashboard[1], dashboard=request.dashboard[0])
    if request.shadow.shadow:
        if request.otlp_endpoint:
            raise InputError("--otlp-endpoint", "cannot be used with --shadow")
        return run_shadow(request)
    if request.shadow != NO_SHADOW:
        needing = "--for, --decisions, --report, --new-config or --new-plugin"
        raise InputError("--shadow", f"is required with {needing}")
    controllers, log = _controllers(request), _run_log(request)
    decision_log = request.log.logging_with_warnings(lambda entry, _now: log.write(entry))
    document = _config_document(request)
    settings = read_client_settings(document, _default_lease(controllers))
    meter = Meter(perf_counter_ns)
    engine_config = _engine_config(request, document, controllers, meter)
    connection = _connection(request.connection, settings)
    credentials = _usable_credentials(connection)
    metrics = _scheduler_metrics(engine_config, meter)

    def on_start(engine: RunningEngine) -> None:
        if isinstance(engine, Engine) and SCHEDULER in controllers:
            metrics.waiting = engine.find(Scheduler).queue
        log.note(f"{', '.join(controllers)} running in {connection.name}")
        if engine_config.batch is not None:
            for note in (
                *override_notes(engine_config.batch),
                *argument_notes(engine_config.batch),
            ):
                log.note(note)

    with ExitStack() as opened:
        opened.enter_context(_library_lines(log))
        dashboard = _dashboard(request, connection.name, settings, opened)
        reporter = _reporter(decision_log, metrics, dashboard)
        tracer = _tracer(request.otlp_endpoint, reporter, log, opened)
        http = _http_options(request, opened)
        extenders = engine_config.scheduler.extenders
        gated = gated_resources(engine_config.scheduler.version)
        options = RunnerOptions(
            config=connection,
            credentials=credentials,
            resources=watched_resources(controllers, gated),
            build=lambda now: build_running_engine(
                replace(engine_config, start=now), tracer or reporter, controllers
            ),
            election=settings.election if request.elects else None,
            limits=settings.limits,
            host=host_name() if request.writes_events else "",
            component=_component(engine_config, controllers),
            extenders=opened.enter_context(reaching(extenders)) if extenders else None,
            log=log,
            meter=meter,
            tracer=tracer,
            on_start=on_start,
        )
        problem = uvloop.run(_run(options, metrics, http, dashboard))
    return _ended(problem, log)


def _component(config: EngineConfig, controllers: tuple[str, ...]) -> str:
    """Return the component name for events about the Lease.

    The name is the schedulerName of the first profile. If `controllers` contains no scheduler, the
    name is `kube-controller-manager`.

    upstream: cmd/kube-scheduler/app/options/options.go: Config
    """
    if SCHEDULER in controllers:
        return config.scheduler.profiles[0].scheduler_name
    return Component.CONTROLLER_MANAGER.value


def _scheduler_metrics(config: EngineConfig, meter: Meter) -> SchedulerMetrics:
    """Return the metrics of the schedulers in `config`, with the plugin times of `meter`."""
    return SchedulerMetrics(
        SilentReporter(),
        meter.times,
        config.scheduler.version.version,
        config.node_lifecycle.profile.version,
        () if config.batch is None else config.batch.ownership.scheduler_names,
        meter,
    )


def _reporter(
    given: Logging, metrics: SchedulerMetrics, dashboard: ClusterDashboard | None
) -> Reporter:
    """Return a reporter that passes decisions to the metrics, the dashboard and the log.

    `given` wraps a reporter in a reporter that also writes the log of decisions
    (`DecisionLogOptions`).
    """

    def wrap(reporter: Reporter) -> Reporter:
        return given(reporter, LocalClock().now)

    return (wrap if dashboard is None else dashboard.logging(wrap))(metrics)


def _tracer(endpoint: str, reporter: Reporter, log: RunLog, opened: ExitStack) -> Tracer | None:
    """Return the tracer that creates spans for --otlp-endpoint; None without this option.

    `opened` closes the connection to the endpoint at the end of the run. Raises InputError.
    """
    if not endpoint:
        return None
    # Imported only where it is used: it needs the extra `otel`.
    from fairlead.cli.commands.run.otlp_exporter import OtlpExporter

    exporter = opened.enter_context(OtlpExporter(endpoint, log.problem))
    return Tracer(reporter, exporter, LocalClock().now)


def _default_lease(controllers: tuple[str, ...]) -> str:
    """Return the default name of the Lease; "" means the Lease of kube-scheduler.

    If `controllers` contains no scheduler, the name begins with `fairlead-`, because the cluster's
    own components can hold the Leases `kube-scheduler` and `kube-controller-manager`.
    """
    return "" if SCHEDULER in controllers else f"fairlead-{controllers[0]}"


def print_roles(request: RunRequest) -> int:
    """Print the roles that the controllers need; return the exit code. Raises InputError."""
    controllers = _controllers(request)
    document = _config_document(request)
    settings = read_client_settings(document, _default_lease(controllers))
    manifest = rbac_manifest(
        controllers,
        settings.election if request.elects else None,
        only_reads=request.shadow.shadow,
        gated=gated_resources(_scheduler(request, document, allow_extenders=True).version),
        has_events=request.writes_events,
        has_server=request.listen != NOTHING,
    )
    print(manifest, end="")
    return exit_code.SUCCESS


def run_shadow(request: RunRequest) -> int:
    """Compare placements of other schedulers with those of Fairlead; at the end, print a summary.

    Ends after a signal, a failure or the duration of --for. Returns the exit code. Raises
    InputError if an option or a file cannot be used.
    """
    options = request.shadow
    require_distinct(
        {"--decisions": options.decisions, "--report": options.report},
        (request.config, options.new_config, request.plugins, options.new_plugin),
        (request.certificate, kubeconfigs(request.connection, by_default=True)),
        in_place=("--decisions",),
    )
    _controllers(request)
    _require_controllers(request.flags, (SCHEDULER,))
    document = _config_document(request)
    settings = read_client_settings(document)
    configs = _compared(request, document)
    duration = _duration(options.duration)
    connection = _connection(request.connection, settings)
    credentials = _usable_credentials(connection)
    metrics = SchedulerMetrics(SilentReporter(), list)
    with ExitStack() as opened:
        log = _run_log(request)
        opened.enter_context(_library_lines(log))
        http = _http_options(request, opened)
        decisions = _line_file("--decisions", options.decisions, opened)
        dashboard = _dashboard(request, connection.name, settings, opened)
        record = ShadowRecord(configs, None if decisions is None else decisions.write)
        metrics.registry.register(record)
        shadow = VersionOrder(Shadow(configs, record.record))
        runner_options = RunnerOptions(
            config=connection,
            credentials=credentials,
            resources=watched_resources((SCHEDULER,), gated_resources(configs["present"].version)),
            build=lambda _now: shadow,
            limits=settings.limits,
            log=log,
            on_start=lambda _: log.note(f"comparing with the schedulers of {connection.name}"),
        )
        began = _time()
        problem = uvloop.run(_run(runner_options, metrics, http, dashboard, duration))
        shadow.flush(LocalClock().now())
        period = began, _time()
    print(json.dumps(record.summary(), indent=2), flush=True)
    if options.report is not None:
        # Imported only if --report is given: the page needs the modules of reports.
        from fairlead.cli.commands.run.shadow_page import render_shadow

        page = render_shadow(connection.name, period, record.summary())
        write_atomically(options.report, page.encode())
    code = _ended(problem, log)
    return exit_code.OUTPUT_FAILED if decisions is not None and decisions.is_incomplete else code


def _config_document(request: RunRequest) -> Document | None:
    """Return the content of the file --config, or None without --config. Raises InputError.

    The file is read only once, because it may be a pipe.
    """
    return None if request.config is None else read_one(request.config, KIND)


def _compared(request: RunRequest, document: Document | None) -> dict[str, SchedulerConfig]:
    """Return the configurations to compare.

    The current configuration has the key `present`. If the options name a new configuration, it
    has the key `new`. Raises InputError.
    """
    options, release = request.shadow, read_release(request.release.choice)
    today = UserPlugins(request.plugins)
    present = read_scheduler_config(document, today, release, allow_extenders=True)
    configs = {"present": present}
    if options.new_config is not None or options.new_plugin:
        plugins = UserPlugins(request.plugins, options.new_plugin)
        new = options.new_config or document
        configs["new"] = read_scheduler_config(new, plugins, release, allow_extenders=True)
    if any(config.extenders for config in configs.values()):
        raise InputError("--shadow", "cannot be used with extenders, which would be called twice")
    return configs


def _duration(text: str) -> float | None:
    """Return the duration of --for in seconds; None without --for. Raises InputError."""
    try:
        return read_duration(text) / NANOSECONDS_PER_SECOND if text else None
    except ValueError as cause:
        raise InputError("--for", str(cause)) from None


def _line_file(option: str, path: Path | None, opened: ExitStack) -> LineFile | None:
    """Open the file at `path`, the value of `option`; return None if `path` is None.

    `opened` closes the file at the end of the run. Raises InputError.
    """
    if path is None:
        return None
    try:
        stream = standard_stream(path)
        file = path.open("wb", buffering=0) if stream is None else FileIO(stream, "w")
        return LineFile(option, path, opened.enter_context(file))
    except OSError as cause:
        problem = cause.strerror or str(cause)
        raise InputError(option, problem, object_name=str(path)) from None


def _time() -> str:
    return format_timestamp(LocalClock().now())


def _ended(problem: str, log: RunLog) -> int:
    if problem:
        log.failure(problem)
    return exit_code.DIFFERENCE if problem else exit_code.SUCCESS


async def _run(
    options: RunnerOptions,
    metrics: SchedulerMetrics,
    http: HttpOptions | None,
    dashboard: ClusterDashboard | None,
    seconds: float | None = None,
) -> str:
    if dashboard is not None:
        options = replace(options, on_updates=dashboard.observe)
    runner = ClusterRunner(options)
    metrics.registry.register(RuntimeMetrics(runner))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, runner.stop)
    if seconds is not None:
        loop.call_later(seconds, runner.stop)
    async with AsyncExitStack() as stack:
        if http is not None:
            client = RestClient(options.config, connections_max=2, credentials=options.credentials)
            await stack.enter_async_context(client)
            server = HttpServer(
                client,
                runner.clock.now,
                is_ready=lambda: runner.has_synced,
                exposition=metrics.exposition,
                explain=lambda query: _explain(runner, query),
                new_link=None if dashboard is None else dashboard.new_link,
            )
            server.log = options.log.problem
            await stack.enter_async_context(served(server, http))
            address = Address(*http.listening.getsockname()[:2])
            options.log.note(f"serving on https://{address}")
        if dashboard is not None:
            await stack.enter_async_context(dashboard.serving(runner))
            options.log.note(f"dashboard: {dashboard.new_link()}")
        return await runner.run()


def _explain(runner: ClusterRunner, query: PodQuery) -> PodAnswer:
    # Imported only on request: the modules of explanations take as long to import as the scheduler.
    from fairlead.cli.commands.run.explanation import explain_running

    return explain_running(runner, query)


def _dashboard(
    request: RunRequest, cluster: str, settings: ClientSettings, opened: ExitStack
) -> ClusterDashboard | None:
    """Return the dashboard with its open socket; None without --dashboard. Raises InputError.

    `cluster` and `settings` have the same meaning as in `cluster_arguments`. `opened` closes the
    socket at the end of the run.
    """
    is_wanted, port = request.dashboard
    if not is_wanted:
        return None
    # Imported only if needed: the page and the recorders take as long to import as the scheduler.
    from fairlead.cli.commands.run.dashboard import ClusterDashboard

    listening = opened.enter_context(open_dashboard_port(port))
    return ClusterDashboard(
        listening,
        cluster,
        cluster_arguments(request, cluster, settings),
        request.flags.as_options(),
    )


def cluster_arguments(request: RunRequest, cluster: str, settings: ClientSettings) -> list[str]:
    """Return the options for the commands that the dashboard runs on this cluster.

    `cluster` is the name of the connection, such as `context prod`. If no option names the cluster,
    the result names the current context, because the user may switch to another context while
    `fairlead run` is running.
    """
    given, (batch_config, batch_plugins) = request.connection, request.batch
    if settings.kubeconfig and not given.is_given:
        given = ConnectionOptions(kubeconfig=settings.kubeconfig)
    if not given.is_given:
        given = ConnectionOptions(context=cluster.removeprefix("context "))
    named = (
        ("--kubeconfig", given.kubeconfig),
        ("--context", given.context),
        ("--config", request.config),
        *(("--plugin", plugin) for plugin in request.plugins),
        ("--batch-config", batch_config),
        *(("--batch-plugin", plugin) for plugin in batch_plugins),
        ("--behave-like", request.release.behave_like or None),
        ("--feature-gates", request.release.feature_gates or None),
    )
    flags = (("--in-cluster", given.in_cluster), ("--allow-extenders", request.allow_extenders))
    options = [word for option, value in named if value is not None for word in (option, value)]
    return [*options, *(flag for flag, is_given in flags if is_given)]


def _controllers(request: RunRequest) -> tuple[str, ...]:
    """Return the chosen controllers in the order of CONTROLLERS. Raises InputError."""
    given = [name for text in request.controllers for name in text.split(",") if name]
    for name in given:
        if name not in CONTROLLERS:
            known = ", ".join(CONTROLLERS)
            raise InputError(
                "--controllers", f"is not a controller; known: {known}", object_name=name
            )
    if not given:
        raise InputError("--controllers", "names no controller")
    if BATCH in given and SCHEDULER not in given:
        raise InputError("--controllers", "batch runs inside the scheduler; add scheduler")
    if request.shadow.shadow and {*given} != {SCHEDULER}:
        raise InputError("--controllers", "only the scheduler can be compared with --shadow")
    return tuple(name for name in CONTROLLERS if name in given)


def _engine_config(
    request: RunRequest, document: Document | None, controllers: tuple[str, ...], meter: Meter
) -> EngineConfig:
    release = read_release(request.release.choice)
    scheduler = _scheduler(request, document, allow_extenders=request.allow_extenders)
    source, plugins = request.batch
    _require_controllers(request.flags, controllers)
    if BATCH not in controllers and (source is not None or plugins):
        raise InputError("--batch-config", "needs --controllers scheduler,batch")
    if source == SINGLE_PODS:
        problem = "single-pods is for simulations; leave batch out of --controllers instead"
        raise InputError("--batch-config", problem)
    batch = read_batch_config(source or _BATCH_DEFAULT, plugins) if BATCH in controllers else None
    return EngineConfig(
        scheduler=dataclasses.replace(scheduler, meter=meter),
        batch=batch,
        node_lifecycle=_node_lifecycle(request.flags, release),
    )


def _scheduler(
    request: RunRequest, document: Document | None, *, allow_extenders: bool
) -> SchedulerConfig:
    return read_scheduler_config(
        document,
        UserPlugins(request.plugins),
        read_release(request.release.choice),
        allow_extenders=allow_extenders,
    )


def _require_controllers(options: NodeFlags, controllers: tuple[str, ...]) -> None:
    """Raise InputError if a flag configures a controller that is not in `controllers`."""
    for flag in options.flags:
        needed = TAINT_EVICTION if flag == "enable-taint-manager" else NODE_LIFECYCLE
        if needed not in controllers:
            raise InputError(f"--{flag}", f"needs --controllers {needed}")


def _node_lifecycle(options: NodeFlags, release: Release) -> NodeLifecycleConfig:
    try:
        config = config_of_flags(options.flags, release.node_lifecycle)
    except FlagError as refused:
        raise InputError(f"--{refused.flag}", refused.problem) from None
    config = replace(config, taint_based_evictions=release.taint_based_evictions)
    require_effect(options, config)
    return config


def _connection(options: ConnectionOptions, settings: ClientSettings) -> ConnectionConfig:
    """Return the connection that the options name, else the one in clientConnection.kubeconfig."""
    if settings.kubeconfig and not options.is_given:
        options = ConnectionOptions(kubeconfig=settings.kubeconfig)
    return connection_of(options)


def _usable_credentials(connection: ConnectionConfig) -> Credentials:
    """Return the credentials that all clients share. Raises InputError if they cannot be used."""
    try:
        return usable_credentials(connection)
    except ConnectionConfigError as cause:
        raise InputError(cause.source, cause.problem, field=cause.field) from None


def _http_options(request: RunRequest, opened: ExitStack) -> HttpOptions | None:
    """Return the options of the HTTP server with its open socket, or None if --listen is `none`.

    `opened` closes the socket at the end of the run. Raises InputError if the address or the
    certificate cannot be used, or if a key is given without a certificate.
    """
    certificate, key = request.certificate
    if key and not certificate:
        raise InputError("--tls-private-key-file", "needs --tls-cert-file")
    if request.listen == NOTHING:
        return None
    # Kubelets send probes from outside of the pod, so every address is allowed.
    address = listen_address(request.listen, beyond_loopback=True)
    listening = opened.enter_context(open_listener(address))
    options = HttpOptions(listening, certificate, key)
    try:
        tls_context(options)
    except (OSError, ssl.SSLError, ValueError) as cause:
        problem = f"cannot be used: {getattr(cause, 'strerror', None) or cause}"
        raise InputError("--tls-cert-file", problem, object_name=certificate) from None
    return options


def _run_log(request: RunRequest) -> RunLog:
    """Return a log that writes to standard error in the format that --log-format names."""
    formatted = FORMS[request.log_format]

    def write(entry: LogEntry, now: Instant) -> None:
        print(f"{formatted(entry, now)}\n", end="", file=sys.stderr, flush=True)

    return RunLog(write, LocalClock().now)


@contextmanager
def _library_lines(log: RunLog) -> Iterator[None]:
    """Write the log records of Python libraries to `log` during the `with` block."""
    handler = LibraryLogHandler(log)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
