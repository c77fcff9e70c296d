"""Parses the text of an expression into a tree, by recursive descent.

    expr            conditionalOr ["?" conditionalOr ":" expr]
    conditionalOr   conditionalAnd {"||" conditionalAnd}
    conditionalAnd  relation {"&&" relation}
    relation        calc {("<" | "<=" | ">=" | ">" | "==" | "!=" | "in") calc}
    calc            unary {("*" | "/" | "%" | "+" | "-") unary}, by precedence
    unary           {"!"} member | {"-"} member
    member          primary {"." name | ".?" name | "." name "(" args ")" | "[" expr "]"}
    primary         name | name "(" args ")" | "(" expr ")" | list | map | object | literal

Upstream's parser is generated, and its error messages depend on its recovery from errors. Three
kinds of recovery are reproduced. A superfluous token before the expected token is dropped
(`extraneous input`). A missing token is inserted if the next token may follow the missing one
(`missing ')' at`). A token that cannot begin an operand is skipped (`mismatched input`). Any other
error ends parsing; upstream might continue and report more errors.

upstream: cel-go's parser/{parser,helper}.go, parser/gen/CEL.g4; antlr's DefaultErrorStrategy
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fairlead.cel.error import ExpressionError, shown_problems
from fairlead.cel.syntax.lexer import (
    BYTES,
    END,
    ESCAPED,
    FLOAT,
    IDENTIFIER,
    INT,
    STRING,
    UINT,
    LexicalToken,
    bytes_of,
    shown_kind,
    shown_kinds,
    shown_token,
    text_of,
    tokens_of,
)
from fairlead.cel.syntax.macro import MacroError, NodeFactory, expanded
from fairlead.cel.syntax.syntax_tree import (
    Call,
    Identifier,
    ListLiteral,
    MapEntry,
    MapLiteral,
    Node,
    Select,
    Tree,
)
from fairlead.cel.value import INT_MAX, INT_MIN, UINT_MAX, integer_of

# upstream: parser/options.go: expressionSizeCodePointLimit, maxRecursionDepth
CHARACTERS_MAX: Final = 100_000
DEPTH_MAX: Final = 250

_LITERALS: Final = frozenset({"true", "false", "null", FLOAT, INT, UINT, STRING, BYTES})
_OPERAND: Final = _LITERALS | {"[", "{", "(", ".", "-", "!", IDENTIFIER}
_LOGICAL: Final = ("&&", "||")
_RELATIONS: Final = frozenset({"<", "<=", ">=", ">", "==", "!=", "in"})
_PRODUCTS, _SUMS = frozenset({"*", "/", "%"}), frozenset({"+", "-"})
# The kinds of tokens that may follow an operand in any context.
_FOLLOWING: Final = _RELATIONS | _PRODUCTS | _SUMS | {".", "[", "?", "&&", "||", END}
_RESERVED: Final = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"}
    | {"package", "namespace", "return", "var", "void", "while"}
)
_TOO_DEEP: Final = "expression recursion limit exceeded"


class _StopParsingError(Exception):
    """Ends the parsing after an error from which this parser does not recover."""


def parsed(expression: str, *, has_bindings: bool = True) -> Tree:
    """Return the tree of an expression. Raises ExpressionError.

    `has_bindings` permits the macro `cel.bind`, which only some expressions of Kubernetes may use.
    """
    size = len(expression)
    if size > CHARACTERS_MAX:
        why = f"expression code point size exceeds limit: size: {size}, limit {CHARACTERS_MAX}"
        raise _without_place(why)
    parser = _Parser(expression, has_bindings=has_bindings)
    try:
        root = parser.whole()
    except (RecursionError, _TooDeepError):
        raise _without_place(f"{_TOO_DEEP}: {DEPTH_MAX}") from None
    if root is None or parser.problems:
        problems = sorted(parser.problems, key=lambda problem: problem[0])
        raise ExpressionError(shown_problems(expression, problems))
    return Tree(root, parser.factory.places)


class _TooDeepError(Exception):
    """Raised if the expression is nested more than DEPTH_MAX levels deep."""


def _without_place(why: str) -> ExpressionError:
    return ExpressionError(f"ERROR: <input>:-1:0: {why}")


class _Parser:
    """A parser of one expression: its tokens, the position of the next token, and the problems."""

    def __init__(self, expression: str, *, has_bindings: bool) -> None:
        """The parser begins with `expression`'s first token; `has_bindings` permits `cel.bind`."""
        self.problems: list[tuple[int, str]] = []
        self.factory = NodeFactory()
        self._has_bindings = has_bindings
        self._tokens = tokens_of(expression, lambda at, why: self.problems.append((at, why)))
        self._at = 0
        self._depth = 0
        # The closing tokens of the surrounding constructs, at which recovery may stop.
        self._closers: list[str] = []
        # After an error, nothing is reported until a token is consumed.
        self._is_recovering = False

    def whole(self) -> Node | None:
        """Return the root of the whole expression; None if it cannot be parsed."""
        try:
            root = self._expr()
            self._take(END)
        except _StopParsingError:
            return None
        return root

    # Tokens.

    @property
    def _kind(self) -> str:
        return self._tokens[self._at].kind

    def _kind_after(self) -> str:
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)].kind

    def _next(self) -> LexicalToken:
        token = self._tokens[self._at]
        if token.kind != END:
            self._at += 1
        self._is_recovering = False
        return token

    def _take(self, kind: str, *also: str) -> LexicalToken:
        """Consume and return the next token, which must have the kind `kind`.

        If the next token has another kind, a syntax error is reported, and the returned token may
        be empty or of a wrong kind. `also` contains further kinds that the grammar permits at this
        position. The caller has already handled tokens of these kinds, so `also` is used only for
        the error message and the recovery. Raises _StopParsingError if parsing cannot continue.
        """
        if self._kind == kind:
            return self._next()
        here, wanted = self._tokens[self._at], {kind, *also}
        if self._kind_after() in wanted:
            self._report(f"extraneous input {shown_token(here)} expecting {shown_kinds(wanted)}")
            self._at += 1
            return self._next() if self._kind == kind else here
        if not also and self._may_follow(kind):
            self._report(f"missing {shown_kind(kind)} at {shown_token(here)}")
            return LexicalToken(kind, "", here.start)
        self._report(f"mismatched input {shown_token(here)} expecting {shown_kinds(wanted)}")
        raise _StopParsingError

    def _may_follow(self, kind: str) -> bool:
        """Return whether the parser can insert a missing token of the kind `kind` here.

        The missing token must be `:`, `)`, `]` or `}`. The next token must be one that may follow
        the missing token.
        """
        if kind == ":":
            return self._kind in _OPERAND
        is_closer = kind in (")", "]", "}")
        return is_closer and (self._kind in _FOLLOWING or self._kind in self._closers[:-1])

    def _report(self, why: str) -> None:
        if not self._is_recovering:
            self.problems.append((self._tokens[self._at].start, f"Syntax error: {why}"))
        self._is_recovering = True

    @contextmanager
    def _inside(self, *closers: str) -> Iterator[None]:
        before = len(self._closers)
        self._closers.extend(closers)
        try:
            yield
        finally:
            del self._closers[before:]

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise _TooDeepError

    # Rules of the grammar.

    def _expr(self, *also: str) -> Node:
        """Parse an expression.

        `also` contains the kinds of tokens that the grammar permits here instead of an expression.
        These kinds affect only the error message and the recovery.
        """
        self._descend()
        node = self._binary(0, also)
        if self._kind == "?":
            place = self._next().start
            with self._inside(":"):
                yes = self._binary(0)
            self._take(":")
            no = self._expr()
            node = self.factory.call(place, "_?_:_", node, yes, no)
        self._depth -= 1
        return node

    def _binary(self, loosest: int, also: tuple[str, ...] = ()) -> Node:
        """Parse an expression whose operators have the precedence `loosest` or a higher one.

        Chains of `&&` and of `||` become balanced trees; other operators are left-associative.
        """
        node, before = self._unary(also), self._depth
        while True:
            level = _LEVELS.get(self._kind, -1)
            if level < loosest:
                self._depth = before
                return node
            if self._kind in _LOGICAL:
                node = self._logical(node, level)
                continue
            self._descend()
            token = self._next()
            function = "@in" if token.kind == "in" else f"_{token.kind}_"
            node = self.factory.call(token.start, function, node, self._binary(level + 1))

    def _logical(self, first: Node, level: int) -> Node:
        """Parse the rest of a chain of `&&` or of `||`, whose first operand is `first`."""
        kind, terms, places = self._kind, [first], []
        while self._kind == kind:
            places.append(self._next().start)
            terms.append(self._binary(level + 1))
        return self._balanced(f"_{kind}_", terms, places, 0, len(places) - 1)

    def _balanced(
        self, function: str, terms: list[Node], places: list[int], low: int, high: int
    ) -> Node:
        middle = (low + high + 1) // 2
        left = terms[middle]
        if middle != low:
            left = self._balanced(function, terms, places, low, middle - 1)
        right = terms[middle + 1]
        if middle != high:
            right = self._balanced(function, terms, places, middle + 1, high)
        return self.factory.call(places[middle], function, left, right)

    def _unary(self, also: tuple[str, ...]) -> Node:
        if self._kind not in _OPERAND:
            skipped = self._skipped_operand(also)
            if skipped is not None:
                return skipped
        sign = self._kind
        is_number = sign == "-" and self._kind_after() in (INT, FLOAT)
        if sign not in ("-", "!") or is_number:
            return self._member()
        place, count = self._next().start, 1
        while self._kind == sign:
            self._next()
            count += 1
        is_number = self._kind == "-" and self._kind_after() in (INT, FLOAT)
        if self._kind in ("-", "!") and not is_number:
            self._no_alternative(f"{sign}{self._kind}")
        node = self._member()
        if count % 2 == 0:
            return node
        return self.factory.call(place, f"{sign}_", node)

    def _skipped_operand(self, also: tuple[str, ...]) -> Node | None:
        """Report the next token, which cannot begin an operand, and recover.

        If the token after the reported token begins an operand, skip the reported token and return
        None. Otherwise, skip tokens until the next token may follow an operand, and return a
        placeholder for the operand. Raises _StopParsingError if the token after the reported one
        has a kind in `also`.
        """
        here, wanted = self._tokens[self._at], _OPERAND | set(also)
        if self._kind_after() in wanted:
            self._report(f"extraneous input {shown_token(here)} expecting {shown_kinds(wanted)}")
            self._at += 1
            if self._kind in _OPERAND:
                return None
            raise _StopParsingError
        self._report(f"mismatched input {shown_token(here)} expecting {shown_kinds(wanted)}")
        while self._kind not in _FOLLOWING and self._kind not in self._closers:
            self._at += 1
        return self.factory.literal(here.start, "null_type", None)

    def _no_alternative(self, text: str) -> None:
        self._report(f"no viable alternative at input '{text}'")
        raise _StopParsingError

    def _member(self) -> Node:
        node, before = self._primary(), self._depth
        while self._kind in (".", "["):
            self._descend()
            node = self._selected(node) if self._kind == "." else self._indexed(node)
        self._depth = before
        return node

    def _selected(self, operand: Node) -> Node:
        dot = self._next()
        if self._kind == "?":
            self._next()
            name = self._field_name()
            literal = self.factory.literal(name.start, "string", _name_of(name))
            return self.factory.call(dot.start, "_?._", operand, literal)
        if self._kind not in (IDENTIFIER, ESCAPED):
            shown = "" if self._kind == END else self._tokens[self._at].text
            self._no_alternative(f".{shown}")
        name = self._next()
        if self._kind == "(" and name.kind == IDENTIFIER:
            return self._called(name.text, operand)
        return Select(self.factory.id_at(dot.start), operand, _name_of(name), is_test=False)

    def _field_name(self) -> LexicalToken:
        if self._kind not in (IDENTIFIER, ESCAPED):
            self._take(IDENTIFIER, ESCAPED)
        return self._next()

    def _indexed(self, operand: Node) -> Node:
        place, function = self._next().start, "_[_]"
        if self._kind == "?":
            self._next()
            function = "_[?_]"
        with self._inside("]"):
            index = self._expr(*(() if function == "_[?_]" else ("?",)))
            self._take("]")
        return self.factory.call(place, function, operand, index)

    def _called(self, name: str, target: Node | None) -> Node:
        """Parse a call from its opening parenthesis, and expand the call if it is a macro."""
        place, arguments = self._next().start, []
        with self._inside(")", ","):
            if self._kind != ")":
                arguments.append(self._expr(")"))
                while self._kind == ",":
                    self._next()
                    arguments.append(self._expr())
            self._take(")")
        call = Call(self.factory.id_at(place), name, target, tuple(arguments))
        try:
            return expanded(call, self.factory, has_bindings=self._has_bindings)
        except MacroError as cause:
            self.problems.append((self.factory.places[cause.node.id], str(cause)))
            return call

    def _primary(self) -> Node:
        match self._kind:
            case "(":
                self._next()
                with self._inside(")"):
                    node = self._expr()
                    self._take(")")
                return node
            case "[":
                return self._list()
            case "{":
                return self._map()
            case "." | "IDENTIFIER":
                return self._name()
            case _:
                return self._literal()

    def _name(self) -> Node:
        """Parse a variable, a call of a global function, or an object."""
        start, dot = self._tokens[self._at].start, ""
        if self._kind == ".":
            dot = self._next().text
        token = self._take(IDENTIFIER)
        type_name = self._object_type(dot + token.text)
        if type_name:
            return self._object(type_name)
        if self._kind == "(":
            return self._called(dot + token.text, None)
        if token.text in _RESERVED:
            self.problems.append((start, f"reserved identifier: {token.text}"))
        return Identifier(self.factory.id_at(start), dot + token.text)

    def _object_type(self, first: str) -> str:
        """Return the name of an object type that begins with `first`; consume the rest of the name.

        If no brace follows the name, return "" and consume nothing.
        """
        at, names = self._at, [first]
        while self._tokens[at].kind == "." and self._tokens[at + 1].kind == IDENTIFIER:
            names.append(self._tokens[at + 1].text)
            at += 2
        if self._tokens[at].kind != "{":
            return ""
        self._at = at
        return ".".join(names)

    def _list(self) -> Node:
        items: list[Node] = []
        optional: list[int] = []
        place = self._next().start
        with self._inside("]", ","):
            while self._kind not in ("]", ","):
                if self._kind == "?":
                    self._next()
                    optional.append(len(items))
                    items.append(self._expr())
                else:
                    items.append(self._expr(*(() if items else ("]", ",", "?"))))
                if self._kind == "," and self._kind_after() not in ("]", ","):
                    self._next()
                elif self._kind not in ("]", ","):
                    self._take("]", ",")
                    return ListLiteral(self.factory.id_at(place), tuple(items), tuple(optional))
                else:
                    break
            if self._kind == ",":
                self._next()
            self._take("]")
        return ListLiteral(self.factory.id_at(place), tuple(items), tuple(optional))

    def _map(self) -> Node:
        entries: list[MapEntry] = []
        place = self._next().start
        with self._inside("}", ",", ":"):
            while self._kind not in ("}", ","):
                is_optional = self._kind == "?"
                if is_optional:
                    self._next()
                more = () if entries or is_optional else ("}", ",", "?")
                key = self._expr(*more)
                entries.append(self._map_entry(key, is_optional=is_optional))
                if not self._is_continued():
                    break
            self._close_entries()
        return MapLiteral(self.factory.id_at(place), "", tuple(entries))

    def _map_entry(self, key: Node | str, *, is_optional: bool) -> MapEntry:
        colon = self._take(":")
        value = self._expr()
        return MapEntry(self.factory.id_at(colon.start), key, value, is_optional)

    def _is_continued(self) -> bool:
        """Return whether another entry follows; if so, consume the comma before it."""
        if self._kind == "," and self._kind_after() not in ("}", ","):
            self._next()
            return True
        return False

    def _close_entries(self) -> None:
        if self._kind == ",":
            self._next()
            self._take("}")
        elif self._kind != "}":
            self._take("}", ",")
        else:
            self._next()

    def _object(self, type_name: str) -> Node:
        entries: list[MapEntry] = []
        place = self._next().start
        with self._inside("}", ","):
            while self._kind not in ("}", ","):
                is_optional = self._kind == "?"
                if is_optional:
                    self._next()
                elif self._kind not in (IDENTIFIER, ESCAPED):
                    self._take(IDENTIFIER, *("}", ",", "?") if not entries else "?", ESCAPED)
                name = _name_of(self._field_name())
                entries.append(self._map_entry(name, is_optional=is_optional))
                if not self._is_continued():
                    break
            self._close_entries()
        return MapLiteral(self.factory.id_at(place), type_name, tuple(entries))

    def _literal(self) -> Node:
        token = self._next()
        place, text = token.start, token.text
        if token.kind == "-":
            token = self._next()
            text = f"-{token.text}"
        match token.kind:
            case "true" | "false":
                return self.factory.literal(place, "bool", token.kind == "true")
            case "null":
                return self.factory.literal(place, "null_type", None)
            case "NUM_FLOAT":
                return self._number(place, "double", text)
            case "NUM_INT":
                return self._number(place, "int", text)
            case "NUM_UINT":
                return self._number(place, "uint", text)
            case _:
                return self._quoted(token)

    def _number(self, place: int, kind: str, text: str) -> Node:
        if kind == "double":
            value = float(text)
            if value in (float("inf"), float("-inf")):
                self.problems.append((place, "invalid double literal"))
            return self.factory.literal(place, kind, value)
        number = integer_of(text.rstrip("uU"))
        low, high = (0, UINT_MAX) if kind == "uint" else (INT_MIN, INT_MAX)
        if not low <= number <= high:
            self.problems.append((place, f"invalid {kind} literal"))
        return self.factory.literal(place, kind, number)

    def _quoted(self, token: LexicalToken) -> Node:
        kind = "bytes" if token.kind == BYTES else "string"
        try:
            value = bytes_of(token) if kind == "bytes" else text_of(token)
        except ValueError as cause:
            self.problems.append((token.start, str(cause)))
            value = b"" if kind == "bytes" else ""
        return self.factory.literal(token.start, kind, value)


# the precedence of operators, lowest first
_LEVELS: Final = {
    "||": 0,
    "&&": 1,
    **dict.fromkeys(_RELATIONS, 2),
    **dict.fromkeys(_SUMS, 3),
    **dict.fromkeys(_PRODUCTS, 4),
}


def _name_of(token: LexicalToken) -> str:
    return token.text.strip("`")
