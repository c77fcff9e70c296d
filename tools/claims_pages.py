"""Writes the pages of docs/from-the-documents from claims/*.yaml: python tools/claims_pages.py.

Each document describes an older version of Kubernetes. claims/ contains its claims, and examples
that prove them. Every example is run in this process with the document's version of Kubernetes, or
with the version that the example states. If a claim differs in 1.36, its example is also run with
1.36. The pages show the lines of the output that prove each claim. tests/test_from_the_documents.py
runs the examples, too, checks every claim, and checks that the pages are up to date.

A check is a text that one line of the output must contain; " … " in it matches any text:

    "Evicting pod" … reason="preemption"       some line contains both, in this order
    not: "Evicting pod"                        no line contains it
    then: "Placed pod on node"                 a line after the one of the previous check
    3 times: "Evicting pod"                    exactly three lines contain it

The output consists of what the command prints, its log, its commands to the API server, and its
metrics. One line for each object at the end follows, such as `after: Pod default/web {…}`.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from fairlead.cli import main

FOLDER: Final = Path(__file__).parent.parent / "docs" / "from-the-documents"
SCENARIOS: Final = FOLDER / "scenarios"
TODAY: Final = "1.36"
# The order of the documents in the tables.
PAGES: Final = ("preemption-1.19", "node-lifecycle-1.16", "kube-batch-actions", "pod-priority-1.21")
_ANY: Final = " … "
_COUNTED: Final = re.compile(r"(\d+) times: ")
_WIDTH_MAX: Final = 150
_LOG_WIDTH_MAX: Final = 220

# --- the claims -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on the output of an example: a line contains `parts` in this order.

    If `is_absent` is set, no line contains them. If `follows` is set, the line comes after the line
    of the previous check. `times` is the number of lines that contain them; None means at least
    one.
    """

    parts: tuple[str, ...]
    is_absent: bool = False
    follows: bool = False
    times: int | None = None

    def lines(self, output: Sequence[str]) -> list[int]:
        """Return the indices of the lines in `output` that contain all parts."""
        return [index for index, line in enumerate(output) if _contains(line, self.parts)]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a document.

    The checks in `shows` hold in the example's version, and the checks in `today` hold in 1.36.
    `instead` explains why the document is wrong about its own version, or what Fairlead does
    differently; "" if the claim holds. `differs` explains what 1.36 does differently; "" if
    nothing.
    """

    number: str
    text: str
    shows: tuple[Check, ...]
    today: tuple[Check, ...]
    instead: str
    differs: str


@dataclass(frozen=True, slots=True)
class Example:
    """The command `run`, and the claims that its output proves for the Kubernetes `version`."""

    run: str
    version: str
    about: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a document."""

    title: str
    about: str
    examples: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A document and its claims; `version` is the Kubernetes version that it describes.

    `reprint` has the page, title and intro of a reprint of the document; None if there is none.
    """

    page: str
    title: str
    intro: str
    version: str
    sections: tuple[Section, ...]
    reprint: dict[str, str] | None

    @property
    def examples(self) -> list[Example]:
        """The examples, in the order of the page."""
        return [example for section in self.sections for example in section.examples]

    @property
    def claims(self) -> list[Claim]:
        """The claims, in the order of their numbers."""
        return [claim for example in self.examples for claim in example.claims]


@cache
def read_documents() -> tuple[Document, ...]:
    """Return the documents in claims/*.yaml, in the order of PAGES."""
    texts = [(FOLDER / "claims" / f"{page}.yaml").read_text() for page in PAGES]
    return tuple(
        _document(page, yaml.safe_load(text)) for page, text in zip(PAGES, texts, strict=True)
    )


def _document(page: str, form: dict[str, Any]) -> Document:
    numbers = (f"{form['letter']}{number}" for number in itertools.count(1))
    sections = tuple(
        Section(
            section["title"],
            section.get("about", ""),
            tuple(
                _example(example, str(form["version"]), numbers) for example in section["examples"]
            ),
        )
        for section in form["sections"]
    )
    return Document(
        page, form["title"], form["intro"], str(form["version"]), sections, form.get("reprint")
    )


def _example(form: dict[str, Any], version: str, numbers: Iterator[str]) -> Example:
    claims = tuple(_claim(claim, next(numbers)) for claim in form["claims"])
    version = str(form.get("version", version))
    return Example(form["run"], version, form.get("about", ""), claims)


def _claim(form: dict[str, Any], number: str) -> Claim:
    shows = tuple(parse_check(text) for text in form["shows"])
    today = tuple(parse_check(text) for text in form.get("today", form["shows"]))
    unknown = set(form) - {"claim", "shows", "today", "instead", "differs"}
    if unknown or ("today" in form) != ("differs" in form):
        raise ValueError(f"{form['claim']}: {unknown or 'today and differs belong together'}")
    return Claim(
        number, form["claim"], shows, today, form.get("instead", ""), form.get("differs", "")
    )


def parse_check(text: str) -> Check:
    """Return the check that `text`, from claims/*.yaml, describes; see the module's docstring."""
    counted = _COUNTED.match(text)
    rest = text.removeprefix("not: ").removeprefix("then: ")
    rest = rest[counted.end() :] if counted else rest
    return Check(
        tuple(rest.split(_ANY)),
        is_absent=text.startswith("not: "),
        follows=text.startswith("then: "),
        times=int(counted[1]) if counted else None,
    )


def failure(checks: Sequence[Check], output: Sequence[str]) -> str:
    """Return a text about the first of `checks` that fails for `output`; "" if none fails."""
    after = -1
    for check in checks:
        found = check.lines(output)
        if check.follows:
            found = [index for index in found if index > after]
        if check.is_absent is bool(found) or check.times not in (None, len(found)):
            return f"{_ANY.join(check.parts)} is in {len(found)} lines"
        after = found[0] if found else after
    return ""


def _contains(line: str, parts: Sequence[str]) -> bool:
    position = 0
    for part in parts:
        position = line.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return True


# --- running the examples ---------------------------------------------------------------------


@cache
def output(run: str, version: str) -> tuple[str, ...]:
    """Return the lines that `run` prints, logs and writes with the Kubernetes `version`."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(SCENARIOS):
        files = {name: Path(folder) / name for name in ("commands", "metrics", "snapshot.json")}
        printed, logged = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(logged), _wide():
            _run([*shlex.split(run), *_options(run, version, files)])
        lines = [*printed.getvalue().splitlines(), *logged.getvalue().splitlines()]
        lines = [line.replace(folder, "") for line in lines]
        return (*lines, *_written(files))


def _run(words: list[str]) -> None:
    if words[0].endswith(".py"):
        saved, sys.argv = sys.argv, words
        try:
            runpy.run_path(words[0], run_name="__main__")
        finally:
            sys.argv = saved
    else:
        main.run(words)


def _options(run: str, version: str, files: dict[str, Path]) -> list[str]:
    if _simulates(run):
        written = [
            word for name in files for word in (f"--{name.partition('.')[0]}", str(files[name]))
        ]
        return ["--behave-like", version, "-v", "5", "--no-report", *written]
    return ["--behave-like", version]


def _simulates(run: str) -> bool:
    """Return whether the command `run` has the options of `fairlead simulate`."""
    return run.startswith("simulate ") or run.partition(" ")[0].endswith(".py")


@contextlib.contextmanager
def _wide() -> Iterator[None]:
    """Set a wide terminal within the `with` block, so that tables do not wrap messages."""
    saved = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "250"
    try:
        yield
    finally:
        if saved is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = saved


def _written(files: dict[str, Path]) -> Iterator[str]:
    for name in ("commands", "metrics"):
        if files[name].exists():
            yield from files[name].read_text().splitlines()
    if files["snapshot.json"].exists():
        for item in json.loads(files["snapshot.json"].read_text())["items"]:
            metadata = item["metadata"]
            name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
            text = json.dumps(item, separators=(",", ":"), ensure_ascii=False)
            yield f"after: {item['kind']} {name} {text}"


# --- the pages --------------------------------------------------------------------------------

HOW: Final = """\
## How to read this page

Every claim has a number. Below each claim are the lines of the output that show it. *Does not hold*
explains why a claim is wrong for the document's version of Kubernetes, or what Fairlead does
differently. *In 1.36* explains what Kubernetes 1.36 does differently from the document's version.
If a claim has no *In 1.36*, 1.36 behaves like the document's version.

Change to the folder [scenarios](scenarios) before you run the commands. `--behave-like` selects the
version; without it, a command shows what Kubernetes 1.36 does. `-v 5` logs decisions to standard
error.

Some lines come from files. You get these files with the options `--commands FILE` (the commands to
the API server, as JSON), `--metrics FILE`, and `--snapshot FILE` (the objects at the end). On this
page, each line from the snapshot begins with `after:`. The sign `…` stands for text that this page
leaves out. *Nowhere:* `TEXT` means that TEXT does not occur in the output. A test of this project
runs every command.
"""
HEAD: Final = """\
# From the documents

Five well-known documents describe preemption, node failures and batch scheduling in older versions
of Kubernetes. Each document has a page here. One document is a reprint of another; the page about
the reprint only links to the page about the original. Every other page has the same sections as its
document. For each claim of the document, the page has a command that shows whether the claim holds
for the document's version. The page also states what Kubernetes 1.36 does differently.
[Versions](../versions.md) explains the option `--behave-like`.

| document | version | claims | do not hold | differ in 1.36 |
|---|---|---|---|---|
"""
LEGEND: Final = """
*Do not hold* counts claims that are wrong for the document's own version, and correct claims that
Fairlead does not reproduce. *Differ in 1.36* counts claims for which 1.36 behaves differently from
the document's version. The pages give the reasons.
"""


def pages() -> dict[str, str]:
    """Return the text of every page, keyed by file name."""
    documents = read_documents()
    found = {f"{document.page}.md": _page(document) for document in documents}
    found |= {
        f"{document.reprint['page']}.md": _reprint(document.reprint)
        for document in documents
        if document.reprint
    }
    rows = itertools.chain.from_iterable(map(_index_rows, documents))
    found["README.md"] = HEAD + "".join(rows) + LEGEND
    return found


def _index_rows(document: Document) -> Iterator[str]:
    claims = document.claims
    counts = [len(claims), sum(bool(claim.instead) for claim in claims)]
    counts.append(sum(bool(claim.differs) for claim in claims))
    names = [(document.title, document.page)]
    if document.reprint:
        names.append((document.reprint["title"], document.reprint["page"]))
    for title, page in names:
        cells = " | ".join(str(count) for count in counts)
        yield f"| [{title}]({page}.md) | {document.version} | {cells} |\n"


def _reprint(reprint: dict[str, str]) -> str:
    return f"# {reprint['title']}\n\n{reprint['intro']}"


def _typed(run: str) -> str:
    return f"python {run}" if run.partition(" ")[0].endswith(".py") else f"fairlead {run}"


def _page(document: Document) -> str:
    sections = "\n".join(_section(section) for section in document.sections)
    return f"# {document.title}\n\n{document.intro}\n{HOW}\n{sections}"


def _section(section: Section) -> str:
    about = f"{section.about}\n\n" if section.about else ""
    examples = "\n".join(_shown(example) for example in section.examples)
    return f"## {section.title}\n\n{about}{examples}"


def _shown(example: Example) -> str:
    options = f"--behave-like {example.version}"
    if _simulates(example.run):
        options += " -v 5 --no-report"
    file = next(word for word in example.run.split() if word.endswith((".yaml", ".py")))
    about = example.about or _title(file)
    command = f"```sh\n{_typed(example.run)} {options}\n```\n"
    link = f"[{Path(file).name}]({os.path.normpath(f'scenarios/{file}')})"
    claims = "\n".join(_claimed(claim, example.run, example.version) for claim in example.claims)
    return f"**{about}** ({link})\n\n{command}\n{claims}"


def _title(file: str) -> str:
    title: str = yaml.safe_load((SCENARIOS / file).read_text())["title"]
    return f"{title}."


def _claimed(claim: Claim, run: str, version: str) -> str:
    text = f"**{claim.number}** {claim.text}"
    if claim.instead:
        text += f"\n\n*Does not hold:* {claim.instead}"
    text += "\n\n"
    text += _excerpt(claim.shows, output(run, version))
    if claim.differs:
        text += f"\n*In 1.36:* {claim.differs}\n\n"
        text += _excerpt(claim.today, output(run, TODAY))
    return text


def _excerpt(checks: Sequence[Check], lines: Sequence[str]) -> str:
    """Return Markdown: the lines that pass `checks`, and the texts that no line contains."""
    shown: dict[str, None] = {}
    absent = []
    after = -1
    for check in checks:
        if check.is_absent:
            absent.append(f"Nowhere: `{_ANY.join(check.parts)}`\n")
            continue
        found = [index for index in check.lines(lines) if not check.follows or index > after]
        after = found[0]
        for index in found[: check.times or 1]:
            shown[_short(lines[index], check.parts)] = None
    block = "```text\n" + "\n".join(shown) + "\n```\n" if shown else ""
    return "\n".join(filter(None, (block, *absent)))


def _short(line: str, parts: Sequence[str]) -> str:
    line = line.strip()
    if len(line) <= (_LOG_WIDTH_MAX if line[:1] in "IW" else _WIDTH_MAX):
        return re.sub(r"  +", "  ", line)
    begin = "" if line.startswith(parts[0]) else "… "
    end = "" if line.endswith(parts[-1]) else " …"
    return begin + _ANY.join(parts) + end


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
