"""The configurations and plugins of the schedulers of a run, as text."""

from __future__ import annotations

from collections.abc import Iterable


def scheduler_words(config: str, plugins: Iterable[str], batch: str) -> str:
    """Return a phrase that names the scheduler with its configuration file and its `plugins`.

    `config` is the file; it is "" for the default scheduler. `batch` names the batch scheduler's
    configuration; it is "" if no batch scheduler runs.
    """
    words = f"scheduler {config}" if config else "default scheduler"
    names = ", ".join(plugins)
    added = f" with {names}" if names else ""
    also = f", batch configuration {batch}" if batch else ""
    return f"{words}{added}{also}"
