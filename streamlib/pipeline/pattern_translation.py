"""A pattern of `re` as one of the `regex` package that shows where more text may matter.

The translation of a pattern is partial (a match of `regex` with ``partial=True``) wherever some
path of it reaches the end of the text. It walks the tree that `re` itself makes of the pattern, so
every flag and notation of `re` means here what it means there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final, TypeAlias

CONTEXT: Final = 64
"""Characters before a match that a pattern may look at."""

ParsedPattern: TypeAlias = Sequence[tuple[Any, Any]]
"""A pattern as `re._parser` parses it: pairs of an operation and its arguments."""

NEVER: Final = "(?!)"

_AT_END: Final = rf"(?s:.){NEVER}"
"""Never matches; at the end of the text it is partial: what comes next is not known."""

_CHARACTER: Final = re.compile(r"\w|\\U\w{8}|\[[^\]]+\]")
"""One character, as a `Translation` writes it."""

_CASES_OF_I: Final = "Ii\u0130\u0131"
"""`re.IGNORECASE` takes these four for equal, `regex` does not."""

_UNICODE_CLASSES: Final = {
    "DIGIT": r"\p{Nd}",
    "SPACE": r"\s\x1c-\x1f",
    "WORD": r"\p{L}\p{N}_",
}
"""The classes of `re` in the notation of `regex`, whose own differ a little."""

_ASCII_CLASSES: Final = {"DIGIT": "0-9", "SPACE": r" \t-\r", "WORD": "a-zA-Z0-9_"}

_LOOKS_AHEAD: Final = {
    "AT_END": 2,  # a newline, and whether another character follows
    "AT_END_STRING": 1,
    "AT_BOUNDARY": 1,
    "AT_NON_BOUNDARY": 1,
}
"""How many characters a position in a pattern looks at."""


class Translation:
    """Writes a parsed pattern as one of `regex` that is partial wherever more text may matter."""

    def __init__(self, flags: int) -> None:
        self._flags = flags
        """Those that hold for the part that is being written."""

    def translate(self, tree: ParsedPattern) -> str:
        """The pattern, or a part of it."""
        written: list[str] = []
        for operation, argument in tree:
            write: Callable[[Any], str] | None = getattr(
                self, f"_write_{str(operation).lower()}", None
            )
            if write is None:
                raise ValueError(f"a pattern with {operation} cannot be searched in a stream")
            written.append(write(argument))
        return "".join(written)

    # --- one method for each operation of `re._parser` ---

    def _write_literal(self, code: int) -> str:
        if self._is_cased_i(code, code):
            return f"[{_CASES_OF_I}]"
        return _escaped(code)

    def _write_not_literal(self, code: int) -> str:
        if self._is_cased_i(code, code):
            return f"[^{_CASES_OF_I}]"
        return f"[^{_escaped(code)}]"

    def _write_any(self, _argument: None) -> str:
        if self._flags & re.DOTALL:
            # Not as in `_AT_END`: regex would write the two as one, and lose the partial match.
            return r"[\U00000000-\U0010ffff]"
        return r"[^\n]"

    def _write_in(self, members: ParsedPattern) -> str:
        """A class. What is not in `\\w` and the like becomes a branch: classes cannot nest."""
        is_negated = False
        listed: list[str] = []
        branches: list[str] = []
        for operation, argument in members:
            match str(operation):
                case "NEGATE":
                    is_negated = True
                case "LITERAL":
                    listed.append(self._range(argument, argument))
                case "RANGE":
                    listed.append(self._range(*argument))
                case _:
                    name = str(argument).removeprefix("CATEGORY_")
                    characters = self._classes()[name.removeprefix("NOT_")]
                    if name.startswith("NOT_"):
                        branches.append(f"[^{characters}]")
                    else:
                        listed.append(characters)
        if listed:
            branches.append(f"[{''.join(listed)}]")
        return _class(branches, listed, is_negated=is_negated)

    def _write_branch(self, argument: tuple[None, list[ParsedPattern]]) -> str:
        branches = [self.translate(branch) for branch in argument[1]]
        return f"(?:{'|'.join(branches)})"

    def _write_subpattern(self, argument: tuple[int | None, int, int, ParsedPattern]) -> str:
        group, added, removed, tree = argument
        before = self._flags
        self._flags = (before | added) & ~removed
        body = self.translate(tree)
        is_cased = bool(self._flags & re.IGNORECASE)
        self._flags = before
        if group is not None:
            return f"({body})"
        if is_cased == bool(before & re.IGNORECASE):
            return f"(?:{body})"
        return f"(?{'i' if is_cased else '-i'}:{body})"

    def _write_max_repeat(self, argument: tuple[int, int, ParsedPattern]) -> str:
        return self._repeat(argument, "")

    def _write_possessive_repeat(self, argument: tuple[int, int, ParsedPattern]) -> str:
        return self._repeat(argument, "+")

    def _write_min_repeat(self, argument: tuple[int, int, ParsedPattern]) -> str:
        least, most, tree = argument
        if tree.getwidth()[0] == 0:  # type: ignore[attr-defined]
            raise ValueError("a lazily repeated group must not match the empty text")
        return f"(?:{_AT_END}|{self.translate(tree)}){_times(least, most)}?"

    def _repeat(self, argument: tuple[int, int, ParsedPattern], kind: str) -> str:
        least, most, tree = argument
        body = self.translate(tree)
        # regex 2026.11.15 passes over some partial matches where a group is repeated, but not over
        # one that a branch of its own asks for. (One character, repeated greedily, needs none.)
        if not _CHARACTER.fullmatch(body):
            body = f"{_AT_END}|{body}"
        return f"(?:{body}){_times(least, most)}{kind}"

    def _write_atomic_group(self, tree: ParsedPattern) -> str:
        return f"(?>{self.translate(tree)})"

    def _write_groupref(self, group: int) -> str:
        return rf"(?:\{group})"

    def _write_groupref_exists(
        self, argument: tuple[int, ParsedPattern, ParsedPattern | None]
    ) -> str:
        group, tree, other = argument
        return f"(?({group}){self.translate(tree)}|{self.translate(other or ())})"

    def _write_assert(self, argument: tuple[int, Any]) -> str:
        return self._look(argument, "=")

    def _write_assert_not(self, argument: tuple[int, Any]) -> str:
        return self._look(argument, "!")

    def _write_failure(self, _argument: None) -> str:
        return NEVER

    _end_of_line = rf"(?:{_AT_END}|(?=\n))"
    _end_of_last_line = rf"(?:\n?+{_AT_END})"
    """A newline may be the last character."""
    _end_of_text = f"(?:{_AT_END})"
    _or_at_end = f"{_AT_END}|"

    def _write_at(self, position: Any) -> str:
        is_multiline = bool(self._flags & re.MULTILINE)
        match str(position):
            case "AT_BEGINNING":
                return "(?m:^)" if is_multiline else r"\A"
            case "AT_BEGINNING_STRING":
                return r"\A"
            case "AT_END":
                return self._end_of_line if is_multiline else self._end_of_last_line
            case "AT_END_STRING":
                return self._end_of_text
            case "AT_BOUNDARY":
                return f"(?:{self._or_at_end}{self._boundary()})"
            case _:
                return f"(?:{self._or_at_end}(?!{self._boundary()}))"

    # --- parts of them ---

    def _look(self, argument: tuple[int, Any], kind: str) -> str:
        direction, tree = argument
        if direction > 0:
            return f"(?{kind}{self.translate(tree)})"
        width = tree.getwidth()[1]
        if width > CONTEXT:
            raise ValueError(f"a pattern may look at {CONTEXT} characters before it, not {width}")
        ahead = _look_ahead(tree)
        # Behind the position everything is known, except to what looks ahead from there.
        plain = _Plain(self._flags).translate(tree)
        if ahead == 0:
            return f"(?<{kind}{plain})"
        if ahead > CONTEXT:
            raise ValueError(
                f"inside a look-behind a pattern may look {CONTEXT} characters ahead, not {ahead}"
            )
        return f"(?:(?s:.){{{ahead}}}+{NEVER}|(?<{kind}{plain}))"

    def _boundary(self) -> str:
        letters = self._classes()["WORD"]
        return f"(?:(?<=[{letters}])(?![{letters}])|(?<![{letters}])(?=[{letters}]))"

    def _classes(self) -> dict[str, str]:
        if self._flags & re.ASCII:
            return _ASCII_CLASSES
        return _UNICODE_CLASSES

    def _range(self, first: int, last: int) -> str:
        written = _escaped(first)
        if last != first:
            written += f"-{_escaped(last)}"
        if self._is_cased_i(first, last):
            written += _CASES_OF_I
        return written

    def _is_cased_i(self, first: int, last: int) -> bool:
        """Whether upper and lower case are the same, and a range has an i of some kind."""
        if not self._flags & re.IGNORECASE or self._flags & re.ASCII:
            return False
        return any(first <= ord(character) <= last for character in _CASES_OF_I)


class _Plain(Translation):
    """Writes what looks behind: its assertions are as they are."""

    _end_of_line = r"(?=\n|\Z)"
    _end_of_last_line = r"(?=\n?\Z)"
    _end_of_text = r"\Z"
    _or_at_end = ""


def _look_ahead(tree: Any) -> int:
    """How many characters behind its own match a pattern may look at."""
    farthest = 0
    for index, (operation, argument) in enumerate(tree):
        own = 0
        match str(operation):
            case "AT":
                own = _LOOKS_AHEAD.get(str(argument), 0)
            case "ASSERT" | "ASSERT_NOT":
                direction, inner = argument
                own = _look_ahead(inner)
                if direction > 0:
                    own += inner.getwidth()[1]
            case _:
                for inner in _parts(argument):
                    own = max(own, _look_ahead(inner))
        # What is matched behind it is no longer ahead.
        least, _ = tree[index + 1 :].getwidth()
        farthest = max(farthest, own - least)
    return farthest


def _parts(argument: Any) -> list[Any]:
    """The patterns among the arguments of an operation."""
    if hasattr(argument, "getwidth"):
        return [argument]
    parts: list[Any] = []
    if isinstance(argument, (tuple, list)):
        for inner in argument:
            parts += _parts(inner)
    return parts


def _class(branches: list[str], listed: list[str], *, is_negated: bool) -> str:
    """One character that one of the branches matches, or none; the last is of those listed."""
    if len(branches) > 1 or not listed:
        joined = "|".join(branches)
        if is_negated:
            return f"(?:(?!{joined})(?s:.))"
        return f"(?:{joined})"
    if is_negated:
        return f"[^{''.join(listed)}]"
    return branches[0]


def _escaped(code: int) -> str:
    character = chr(code)
    if character.isalnum() and character.isascii():
        return character
    return f"\\U{code:08x}"


def _times(least: int, most: int) -> str:
    """A number of repetitions."""
    if most >= 2**31:  # the parser's own number for no limit
        return f"{{{least},}}"
    return f"{{{least},{most}}}"


def beginning(tree: ParsedPattern, flags: int) -> re.Pattern[str] | None:
    """A pattern of one character that finds every one with which a match may begin.

    Args:
        tree: the parsed pattern.
        flags: of the pattern.

    Returns:
        None if that may be any character, or is not easily said.
    """
    first = _first_characters(tree)
    if not first:
        return None
    parser: Any = import_module("re._parser")
    compiler: Any = import_module("re._compiler")
    operations: Any = import_module("re._constants")
    state: Any = tree.state  # type: ignore[attr-defined]
    branches = [parser.SubPattern(state, [operation]) for operation in first]
    pattern: re.Pattern[str] = compiler.compile(
        parser.SubPattern(state, [(operations.BRANCH, (None, branches))]), flags
    )
    return pattern


def _first_characters(tree: ParsedPattern) -> list[tuple[Any, Any]] | None:
    """The operations for the first character of a match; None: not easily said."""
    first: list[tuple[Any, Any]] = []
    for operation, argument in tree:
        name = str(operation)
        if name in {"LITERAL", "NOT_LITERAL", "IN"}:
            return [*first, (operation, argument)]
        if name in {"AT", "ASSERT", "ASSERT_NOT"}:
            continue
        branches = _branches(name, argument)
        for branch in branches:
            characters = _first_characters(branch)
            if characters is None:
                return None
            first += characters
        if not branches:
            return None
        is_optional = name.endswith("REPEAT") and argument[0] == 0
        if not is_optional and all(branch.getwidth()[0] > 0 for branch in branches):
            return first
    # It may be empty: then what follows comes first.
    return first


def _branches(name: str, argument: Any) -> list[Any]:
    """The patterns with which an operation may begin; none: not easily said."""
    if name == "BRANCH":
        branches: list[Any] = argument[1]
        return branches
    if name.endswith("REPEAT"):
        return [argument[2]]
    if name == "SUBPATTERN":
        _, added, removed, inner = argument
        # Flags of a part are not those of the whole.
        if not (added or removed):
            return [inner]
    return []
