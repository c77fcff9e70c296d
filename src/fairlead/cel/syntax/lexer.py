"""Splits the text of an expression into tokens, and decodes literals.

Upstream's lexer is generated from a grammar and takes the longest token at each position. If no
token matches, the lexer reads on while the characters could still be the beginning of a token. The
lexer skips these characters and the next one, and reports all of them in one message. `_unknown`
does the same.

upstream: cel-go's parser/gen/CEL.g4, parser/unescape.go
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

END: Final = "<EOF>"
FLOAT, INT, UINT = "NUM_FLOAT", "NUM_INT", "NUM_UINT"
STRING, BYTES, IDENTIFIER, ESCAPED = "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER"

_WORDS: Final = frozenset({"in", "true", "false", "null"})
_ESCAPE: Final = (
    r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
)
_STRING: Final = rf'''
    (?:[rR](?:"""(?s:.*?)"""|\'\'\'(?s:.*?)\'\'\'|"[^"\n\r]*"|'[^'\n\r]*')
    |"""(?:{_ESCAPE}|[^\\])*?"""|\'\'\'(?:{_ESCAPE}|[^\\])*?\'\'\'
    |"(?:{_ESCAPE}|[^\\"\n\r])*"|'(?:{_ESCAPE}|[^\\'\n\r])*')
'''
_TOKEN: Final = re.compile(
    rf"""
    (?P<skipped>[\t\r\n\f\ ]+|//[^\n]*)
    |(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+
        |\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<NUM_UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<BYTES>[bB]{_STRING})
    |(?P<STRING>{_STRING})
    |(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<mark>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)
# The beginning of an incomplete token: a string, a quoted name, or half of an operator.
_BEGINNING: Final = re.compile(
    rf"""
    (?:"(?:{_ESCAPE}|[^\\"\n\r])*|'(?:{_ESCAPE}|[^\\'\n\r])*)
        (?:\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}}|[0-3][0-7]?)?)?
    |`[A-Za-z0-9_.\-/\ ]*|[&|=]|
    """,
    re.VERBOSE,
)
_SHOWN: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
_ESCAPED: Final = re.compile(
    r"\\(?:[xX](?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})"
    r"|(?P<o>[0-3][0-7]{2})|(?P<simple>.))|(?P<other>[^\\]+)",
    re.DOTALL,
)
# The kinds of tokens as upstream lists them in messages.
_ORDER: Final = (
    "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",",
    "-", "!", "?", ":", "+", "*", "/", "%", "true", "false", "null",
    FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER, ESCAPED,
)  # fmt: skip
_NAMED_KINDS: Final = frozenset({FLOAT, INT, UINT, STRING, BYTES, IDENTIFIER, ESCAPED, END})


class LexicalToken(Struct, frozen=True):
    """A token: its kind, its text, and the position of its first character (`start`).

    `kind` is the punctuation or keyword itself, or one of the constants of this module, such as
    IDENTIFIER.
    """

    kind: str
    text: str
    start: int


def tokens_of(expression: str, report: Callable[[int, str], None]) -> list[LexicalToken]:
    """Return the tokens of `expression`, followed by END.

    `report` is called with the position and the message of each invalid token.
    """
    found: list[LexicalToken] = []
    at = 0
    while at < len(expression):
        matched = _TOKEN.match(expression, at)
        if matched is None:
            at = _unknown(expression, at, report)
            continue
        kind, text = matched.lastgroup or "", matched.group()
        if kind != "skipped":
            is_itself = kind == "mark" or text in _WORDS
            found.append(LexicalToken(text if is_itself else kind, text, at))
        at = matched.end()
    found.append(LexicalToken(END, END, len(expression)))
    return found


def _unknown(expression: str, at: int, report: Callable[[int, str], None]) -> int:
    """Report characters that do not begin a token; return the position after these characters."""
    matched = _BEGINNING.match(expression, at)
    end = (matched.end() if matched else at) + 1
    shown = "".join(_SHOWN.get(one, one) for one in expression[at:end])
    report(at, f"Syntax error: token recognition error at: '{shown}'")
    return end


def text_of(token: LexicalToken) -> str:
    """Return the value of a string literal. Raises ValueError for an invalid code point."""
    body, is_raw = _body(token.text)
    return body if is_raw else "".join(map(_character, _ESCAPED.finditer(body)))


def bytes_of(token: LexicalToken) -> bytes:
    """Return the value of a bytes literal; hexadecimal and octal escapes are one byte each.

    Raises ValueError if the literal contains a Unicode escape.
    """
    body, is_raw = _body(token.text[1:])
    if is_raw:
        return body.encode()
    return b"".join(map(_bytes, _ESCAPED.finditer(body)))


def _body(literal: str) -> tuple[str, bool]:
    """Return (the text between the quotes, whether the literal is raw)."""
    is_raw = literal[0] in "rR"
    text = literal[is_raw:].replace("\r\n", "\n").replace("\r", "\n")
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    return text[width:-width], is_raw


def _character(matched: re.Match[str]) -> str:
    if matched["other"] is not None:
        return matched["other"]
    if matched["simple"] is not None:
        return _SIMPLE.get(matched["simple"], matched["simple"])
    code = int(matched["o"], 8) if matched["o"] else int(matched[matched.lastgroup or 0], 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _bytes(matched: re.Match[str]) -> bytes:
    if matched["x"]:
        return bytes((int(matched["x"], 16),))
    if matched["o"]:
        return bytes((int(matched["o"], 8),))
    if matched["u"] or matched["U"]:
        raise ValueError("unable to unescape string")
    return _character(matched).encode()


def shown_kind(kind: str) -> str:
    """Return upstream's text for the token kind `kind`; punctuation and keywords are quoted."""
    return kind if kind in _NAMED_KINDS else f"'{kind}'"


def shown_token(token: LexicalToken) -> str:
    """Return the text of a token as upstream prints it."""
    text = token.text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    return f"'{text}'"


def shown_kinds(kinds: set[str] | frozenset[str]) -> str:
    """Return the names of token kinds as upstream lists them."""
    if kinds == {END}:
        return END
    shown = [shown_kind(kind) for kind in _ORDER if kind in kinds]
    return shown[0] if len(shown) == 1 else f"{{{', '.join(shown)}}}"
