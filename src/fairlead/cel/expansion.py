"""How long an expression becomes once its macros are spelled out.

The library's `optMap` says twice what it is called on, so that a row of twenty says it a million
times. That has to be known before its parser reads the text. It is found out from brackets and dots
alone: a text that is no expression has some length as well.

upstream: cel-go's parser/options.go:ExpressionSizeCodePointLimit; its macro says nothing twice
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

CHARACTERS_MAX: Final = 100_000
_TOKEN: Final = re.compile(
    r"""
    (?P<text>[rRbB]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))
    |(?P<twice>\b(?:optMap|optFlatMap|sortBy)\s*\()
    |(?P<open>[(\[{])
    |(?P<close>[)\]}])
    |(?P<word>\w+|\.\??|\s+)
    |(?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class ExpressionError(ValueError):
    """An expression that is none; the text says why, as its compiler does.

    `stage` is what has failed.
    """

    stage = "compilation"

    @property
    def whole(self) -> str:
        """What has failed, and why."""
        return f"{self.stage} failed: {self}"


class ConstantError(ExpressionError):
    """An expression with a constant that is none of what it is made to be."""

    stage = "program instantiation"


@dataclass(slots=True)
class _Bracket:
    """What is between two brackets: what is done with, and what a dot may follow."""

    is_twice: bool = False
    done: int = 0
    chain: int = 0


def check_size(expression: str) -> None:
    """Raises ExpressionError for an expression that is too long, or would be."""
    size = len(expression)
    if size <= CHARACTERS_MAX:
        size = max(size, _expanded(expression)) if "opt" in expression else size
    if size > CHARACTERS_MAX:
        why = f"expression code point size exceeds limit: size: {size}, limit {CHARACTERS_MAX}"
        raise ExpressionError(f"ERROR: <input>:-1:0: {why}")


def _expanded(expression: str) -> int:
    open_brackets = [_Bracket()]
    for token in _TOKEN.finditer(expression):
        here, size = open_brackets[-1], len(token.group())
        match token.lastgroup:
            case "open" | "twice":
                here.chain += size
                open_brackets.append(_Bracket(token.lastgroup == "twice"))
            case "close" if len(open_brackets) > 1:
                inner = open_brackets.pop()
                here = open_brackets[-1]
                here.chain = here.chain * (1 + inner.is_twice) + inner.done + inner.chain + size
            case "mark":
                here.done += here.chain + size
                here.chain = 0
            case _:
                here.chain += size
        if here.chain > CHARACTERS_MAX:
            break
    return sum(one.done + one.chain for one in open_brackets)
