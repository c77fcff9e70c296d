"""`make fuzz`: fuzzes the parsers and a served API for a number of minutes.

A third of the time is for generated texts, bodies, requests and types, without a socket and with
new seeds in each round. The rest is for Schemathesis over the OpenAPI documents of a real
`fairlead up`, whose memory must not grow after a warm-up. Prints the number of requests and the
results; the exit status is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random  # noqa: TID251 - random numbers from the run's seed
from time import perf_counter
from typing import Final

from tests.fuzz import openapi
from tests.fuzz.served import Served, served

HERE: Final = Path(__file__).parent
PARSERS: Final = ("texts", "bodies", "requests", "mutations", "custom", "webhooks", "files")
PARSING_SHARE: Final = 1 / 3
MEMORY_KIB_MAX: Final = 3 << 20
GROWTH_MIB_MAX: Final = 48.0
VISIT_SECONDS: Final = 10.0
WARMING_VISITS: Final = 3
ROUND_SECONDS_MAX: Final = 900
OUTPUT_SHOWN: Final = 20_000


@dataclass
class Report:
    """The printed summary of the run and its failures."""

    rounds: Counter[str] = field(default_factory=Counter)
    requests: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    memory: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report."""
        for name, number in sorted(self.rounds.items()):
            yield f"{name}: {number} rounds"
        yield f"children's memory: at most {_peak_mib():.0f} MiB"
        by_class: Counter[str] = Counter()
        for response, number in self.answers.items():
            code = response.split()[-1]
            by_class[code if code.startswith("5") else f"{code[0]}xx"] += number
        yield f"schemathesis: {self.requests} requests; the server answered {dict(by_class)}"
        if self.memory:
            memory = " -> ".join(f"{mib:.0f}" for mib in self.memory)
            yield f"the server's memory (fresh, warm, in the end): {memory} MiB"
        yield from self.problems
        yield "FAILED" if self.problems else "nothing failed"


def fuzz(minutes: float, seed: int) -> Report:
    """Fuzz for about `minutes`; `seed` determines the inputs."""
    report = Report()
    seconds = minutes * 60
    _parse(report, seconds * PARSING_SHARE, seed)
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as server:
        _serve(report, server, seconds * (1 - PARSING_SHARE), seed)
    return report


def _parse(report: Report, seconds: float, seed: int) -> None:
    """Fuzz the parsers in rounds, each with other examples."""
    end = perf_counter() + seconds
    number = 0
    while perf_counter() < end or not number:
        name = PARSERS[number % len(PARSERS)]
        _round(report, name, seed + number)
        number += 1


def _round(report: Report, name: str, seed: int) -> None:
    bounded = ["sh", "-c", f'ulimit -v {MEMORY_KIB_MAX}; exec "$@"', "sh"]
    # With -m "", also the tests that are marked as long.
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", ""]
    done = subprocess.run(
        [*bounded, *pytest, f"--hypothesis-seed={seed}", str(HERE / f"test_{name}.py")],
        env=os.environ | {"HYPOTHESIS_PROFILE": "fuzz"},
        cwd=HERE.parent.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=ROUND_SECONDS_MAX,
    )
    report.rounds[name] += 1
    if done.returncode:
        said = (done.stdout + done.stderr)[-OUTPUT_SHOWN:]
        report.problems.append(f"{name}, seed {seed}, ended with {done.returncode}:\n{said}")


def _serve(report: Report, server: Served, seconds: float, seed: int) -> None:
    """Visit the documents in turn, the long ones more often."""
    report.memory.append(server.rss_mib)
    end, visits = perf_counter() + seconds, 0
    documents = openapi.documents(server)
    weights = [len(operations) ** 0.5 for operations in documents.values()]
    chance = Random(seed)
    while perf_counter() < end or visits <= WARMING_VISITS:
        name = chance.choices(list(documents), weights)[0]
        visit = openapi.visit(server, name, documents[name], VISIT_SECONDS, seed + visits)
        visits += 1
        report.requests += visit.requests
        if visit.problem:
            report.problems.append(f"{name}, seed {seed}:\n{visit.problem[:OUTPUT_SHOWN]}")
        if visits == WARMING_VISITS:
            openapi.leave_nothing(server)
            report.memory.append(server.rss_mib)
    openapi.leave_nothing(server)
    report.memory.append(server.rss_mib)
    report.answers = server.answers()
    growth = report.memory[-1] - report.memory[1]
    if growth > GROWTH_MIB_MAX:
        report.problems.append(f"the server grew by {growth:.0f} MiB")


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main() -> int:
    """Run; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    wanted = parser.parse_args()
    seed = wanted.seed or int.from_bytes(os.urandom(3))
    print(f"seed {seed}", flush=True)
    report = fuzz(wanted.minutes, seed)
    print("\n".join(report.lines()))
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
