"""Runs one scenario: a control plane over a store, with faults, restarts and checks.

1. chaos   changes happen and commands get faults; every command and record is checked
2. calm    no changes and no faults; the cluster must come to rest
3. rest    the final state is checked; then a new process starts from the store and must not
           change any object
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from typing import Final
from zlib import crc32

import msgspec
from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.apiserver.admission.chain import served_admission
from fairlead.apiserver.kind import POD
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.store import PodCopying, Store
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.apiserver.storage.storage import StoredChange, encode, value_of
from fairlead.engine.core.command import IssuedCommand
from fairlead.engine.core.instant import Instant, seconds, to_seconds
from fairlead.engine.core.reporter import Reporter
from fairlead.engine.engine import Engine
from fairlead.testing.torture.auditor import Auditor
from fairlead.testing.torture.client_script import ClientScript, ProcessKilledError
from fairlead.testing.torture.control_plane_config import engine_config
from fairlead.testing.torture.fault.fault_plan import FaultPlan
from fairlead.testing.torture.fault.faulty_world import EndlessInstantError, FaultyWorld
from fairlead.testing.torture.fault.in_process_extender import InProcessExtender
from fairlead.testing.torture.fault.in_process_webhooks import InProcessWebhooks
from fairlead.testing.torture.final_state import FinalState, is_volatile
from fairlead.testing.torture.history import StoreHistory
from fairlead.testing.torture.law import Law, LawBrokenError
from fairlead.testing.torture.scenario import Fault, TortureScenario
from fairlead.worlds.driver import CommandSource, LivelockError, World
from fairlead.worlds.local.bootstrap.batch_definitions import DEFAULT_QUEUE, job_kinds
from fairlead.worlds.local.bootstrap.karpenter_definitions import karpenter_kinds
from fairlead.worlds.local.control_plane import ControlPlane
from fairlead.worlds.local.world import LocalWorld
from fairlead.worlds.seeded_ids import SeededIds

START: Final[Instant] = seconds(1_767_225_600)  # 2026-01-01
REST: Final = seconds(1_100)  # longer than all periods, and the longest backoff of 1,000 s
RESTS_MAX: Final = 40
WORKING_RESTS_MAX: Final = 200
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class Violation(Struct, frozen=True):
    """A `Law` that a run broke, and a message that says how.

    `at` is the time in nanoseconds after the start. `trace` is the traceback if an exception was
    raised.
    """

    law: Law
    message: str
    at: int
    trace: str = ""


class Result(Struct):
    """The result of a run; `digest` is a checksum of all commands and their times.

    `tally` counts what happened, by names such as `starts`. `checked` counts the checks of each
    `Law`, by its name. `faults` are the injected faults.
    """

    scenario: TortureScenario
    failure: Violation | None = None
    tally: Counter[str] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    faults: tuple[Fault, ...] = ()
    digest: int = 0
    virtual_ns: int = 0


def _same(engine: Engine) -> Engine:
    return engine


def run(scenario: TortureScenario, replaced: Callable[[Engine], Engine] = _same) -> Result:
    """Run `scenario` and return the result.

    Whenever a simulated process starts, its new engine is passed to `replaced`. The process then
    runs the engine that `replaced` returns.
    """
    return _Run(scenario, replaced).run()


class _Run:
    def __init__(self, scenario: TortureScenario, replaced: Callable[[Engine], Engine]) -> None:
        self.result = Result(scenario)
        self._scenario = scenario
        self._replaced = replaced
        self._calm_at = START + scenario.chaos_ms * NANOSECONDS_PER_MILLISECOND
        self._end = self._calm_at + scenario.calm_ms * NANOSECONDS_PER_MILLISECOND
        self._plan = FaultPlan(scenario)
        self._script = ClientScript(scenario.changes, START, self.result.tally, self._suspend)
        self._ids = SeededIds(scenario.seed)
        self._history = StoreHistory(self.result.checked, has_webhooks=scenario.options.webhooks)
        self._now: Instant = START
        self._suspended_until: Instant = 0
        self._restless: Counter[str] = Counter()
        self._rest_from = self._end - REST
        self._completed = 0  # Succeeded pods, which belong to Jobs

    def run(self) -> Result:
        try:
            self._bootstrap()
            self._run_until(self._end)
            self._wait_for_rest()
            self._check_rest()
        except LawBrokenError as broken:
            self._fail(broken.law, broken.message)
        except (LivelockError, EndlessInstantError) as endless:
            self._fail(Law.NO_LIVELOCK, str(endless))
        except Exception as crash:  # noqa: BLE001 - every exception is a finding
            where = traceback.extract_tb(crash.__traceback__)[-1]
            message = f"{type(crash).__name__}: {crash} in {where.name}"
            self._fail(Law.NO_CRASH, message, traceback.format_exc())
        self.result.faults = tuple(self._plan.injected)
        self.result.virtual_ns = self._now - START
        return self.result

    def _fail(self, law: Law, message: str, trace: str = "") -> None:
        self.result.failure = Violation(law, message, self._auditor.now - START, trace)

    # --- the process -------------------------------------------------------------------------

    def _bootstrap(self) -> None:
        self._auditor = Auditor(self.result.checked, self._note)
        self._open(CompactStorage())
        for manifest in (*job_kinds(), *karpenter_kinds(), *self._scenario.objects, DEFAULT_QUEUE):
            self._store.create(manifest, START)
        self._start(START)

    def _open(self, storage: CompactStorage) -> None:
        admission = served_admission(self._ids.new_suffix)
        self._store = Store(
            self._ids,
            admission=admission,
            registry=API_SERVER,
            storage=storage,
            copying=PodCopying(),
        )
        self._store.subscribe(self._observe)

    def _start(self, now: Instant) -> None:
        """Start a control plane over the current store."""
        options = self._scenario.options
        self._auditor = Auditor(self.result.checked, self._note)
        self._auditor.suspended_until = self._suspended_until
        tally = self.result.tally
        config = engine_config(options, self._scenario.seed, now, tally, self._is_calm)
        self._plane = ControlPlane(
            self._store, now, config=config, logging=self._listen, interpose=self._interpose
        )

    def _is_calm(self) -> bool:
        return self._auditor.now >= self._calm_at

    def _listen(self, _: Reporter) -> Reporter:
        return self._auditor

    def _interpose(self, engine: Engine, world: LocalWorld) -> tuple[CommandSource, World]:
        self._auditor.attach(self._replaced(engine))
        if self._scenario.options.extender:
            world.extenders = InProcessExtender(self.result.tally, self._is_calm)
        webhooks = None
        if self._scenario.options.webhooks:
            webhooks = InProcessWebhooks(self.result.tally, self._is_calm)
        self._world = FaultyWorld(
            world,
            self._plan,
            self._script,
            self.result.tally,
            calm_at=self._calm_at,
            webhooks=webhooks,
        )
        self._world.suspended_until = self._suspended_until
        return self._auditor, self._world

    def _run_until(self, end: Instant) -> None:
        while self._now < end:
            try:
                self._now = self._plane.run_until(end)
            except ProcessKilledError as killed:
                self._now = killed.at + killed.down
                self._restart()

    def _restart(self) -> None:
        """Simulate a restart: start a new ControlPlane on a copy of the stored objects."""
        self.result.tally["starts"] += 1
        old = self._store.storage
        storage = CompactStorage()
        objects = (
            (kind, msgspec.json.decode(encode(value_of(one)), type=Json))
            for kind in old.kinds()
            for _, one in old.stored_items(kind)
        )
        storage.restore(objects, old.version)
        self._open(storage)
        self._start(self._now)

    def _suspend(self, until: Instant) -> None:
        self._suspended_until = until
        self._auditor.suspended_until = self._world.suspended_until = until

    def _note(self, issued: IssuedCommand, now: Instant) -> None:
        """Add a command and its time to the digest."""
        result = self.result
        stamp = crc32(now.to_bytes(8, "big"), result.digest)
        result.digest = crc32(_ENCODER.encode(issued.command), stamp)

    def _observe(self, change: StoredChange) -> None:
        """Check a change; count it if it comes after the cluster should have come to rest."""
        self._history.observe(change)
        self._completed += _completes_pod(change)
        if self._auditor.now >= self._rest_from and not is_volatile(change.object):
            meta = change.object["metadata"]
            key = f"{change.kind.kind} {meta.get('namespace', '')}/{meta['name']}"
            self._restless[f"{change.type} {key}"] += 1

    # --- the end -----------------------------------------------------------------------------

    def _wait_for_rest(self) -> None:
        """Run in periods of length REST until a period has no change, or until a limit is reached.

        The first limit is RESTS_MAX periods in a row in which no pod completes. A completed pod
        resets this count, because Jobs may wait for each other for hours. The second limit is
        WORKING_RESTS_MAX periods in total. This limit is needed for shrunk scenarios. Such a
        scenario may lack the changes that suspend its CronJobs. The CronJobs then create Jobs
        forever.
        """
        rests = 0
        for _ in range(WORKING_RESTS_MAX):
            if not self._restless or rests == RESTS_MAX:
                return
            completed = self._completed
            self._restless.clear()
            self._run_until(self._now + REST)
            rests = 0 if self._completed > completed else rests + 1

    def _check_rest(self) -> None:
        self._auditor.validate()
        if self._restless:
            most = ", ".join(f"{name} ({n} times)" for name, n in self._restless.most_common(5))
            raise LawBrokenError(Law.SETTLES, f"in the last {to_seconds(REST):.0f} s: {most}")
        self.result.checked[Law.SETTLES.name] += 1
        unexpected_jobs = self._auditor.unexpected_jobs
        final = FinalState(self._store, self.result.checked, self._now, unexpected_jobs)
        final.check()
        self._restart()
        self._run_until(self._now + REST)
        if final.has_lost_nodes(self._store):
            self._run_until(self._now + REST)
            unexpected_jobs = self._auditor.unexpected_jobs
            FinalState(self._store, self.result.checked, self._now, unexpected_jobs).check()
        else:
            final.compare(self._store)


def _completes_pod(change: StoredChange) -> bool:
    """Return whether `change` sets the phase of a pod to Succeeded."""
    if change.kind is not POD or _phase(change.object) != "Succeeded":
        return False
    return change.previous is not None and _phase(change.previous) != "Succeeded"


def _phase(pod: Json) -> str:
    phase: str = pod.get("status", {}).get("phase", "")
    return phase
