"""Makes the images in docs/images of a report and of the dashboard of a cluster, with Chromium.

    python tools/screenshots.py

Run this tool after the report or the dashboard has changed, and look at the images.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fairlead.cli.main import run

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
if TYPE_CHECKING:
    from tests.browser.conftest import Page

IMAGES: Final = ROOT / "docs" / "images"
STORE: Final = "examples/store/store.yaml"
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
SIZES: Final = {"": (1280, 800), "-narrow": (390, 844)}
THEMES: Final = {"": "light", "-dark": "dark"}
TRIES_MAX: Final = 200
PAUSE_S: Final = 0.1


def main() -> int:
    """Write the images of the report and of the dashboard; return the exit status."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"screenshots: install one of {', '.join(BROWSERS)}", file=sys.stderr)
        return 1
    from tests.browser.conftest import browsing  # noqa: PLC0415 - needs the path above

    os.chdir(ROOT)  # so that the report shows a relative path of the dump
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with browsing(Path(browser), folder / "profile") as page:
            _take_report(page, folder / "report.html")
            with _cluster(folder / "kubeconfig") as link:
                _take_dashboard(page, link)
    return 0


def _take_report(page: Page, path: Path) -> None:
    run(["whatif", STORE, "--fail-zone", "west-1b", "--for", "20m", "--report", str(path)])
    for size, (width, height) in SIZES.items():
        for suffix, theme in THEMES.items():
            page.open(path, width=width, height=height, theme=theme)
            page.screenshot(IMAGES / f"report{size}{suffix}.png")


@contextmanager
def _cluster(kubeconfig: Path) -> Iterator[str]:
    """Run a paused cluster with the objects of STORE; yield a link to its dashboard."""
    command = [sys.executable, "-m", "fairlead.cli", "up", "--paused", "--dashboard"]
    command += ["--snapshot", STORE, "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own
    assert process.stdout is not None
    try:
        process.stdout.readline()
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None
        yield found[0]
    finally:
        process.terminate()
        process.wait()


def _take_dashboard(page: Page, link: str) -> None:
    """Stop node worker-01, ask a what-if ten minutes later, and write images of the page's top."""
    page.resize(*SIZES[""])
    page.send("Page.navigate", url=link)
    _wait(page, "document.documentElement?.dataset.drawn === 'yes'")
    page.js("location.hash = '#node=worker-01'")
    _press(page, ".clock-buttons", "1m")
    _wait(page, "document.querySelector('.node-actions') !== null")
    _press(page, ".node-actions", "Stop")
    _wait(page, "document.querySelector('.node-actions').innerText.includes('has stopped')")
    for _ in range(2):
        _press(page, ".clock-buttons", "5m")
        time.sleep(1)  # noqa: TID251 - of a real server
    page.type(".ask-field", "--drain worker-02")
    _press(page, "#ask", "Ask")
    _wait(page, "document.querySelector('.ask-answer a') !== null")
    page.js("document.activeElement.blur()")
    for size, (width, height) in SIZES.items():
        for suffix, theme in THEMES.items():
            scheme = [{"name": "prefers-color-scheme", "value": theme}]
            page.send("Emulation.setEmulatedMedia", features=scheme)
            page.resize(width, height)
            page.mouse_over("h1")
            page.js("window.scrollTo(0, 0)")
            time.sleep(2)  # noqa: TID251 - of a real server, which sends the newest state
            page.settle()
            page.screenshot(IMAGES / f"dashboard{size}{suffix}.png")


def _press(page: Page, place: str, text: str) -> None:
    page.click(f"{place} button", page.texts(f"{place} button").index(text))


def _wait(page: Page, expression: str) -> None:
    for _ in range(TRIES_MAX):
        if page.js(expression):
            page.settle()
            return
        time.sleep(PAUSE_S)  # noqa: TID251 - of a real browser
    raise TimeoutError(expression)


if __name__ == "__main__":
    sys.exit(main())
