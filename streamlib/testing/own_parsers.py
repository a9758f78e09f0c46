"""Parsers of anybody, for `streamlib fuzz` and `streamlib bench`: how they are made and read.

A parser is a class or a function that makes an object with `feed(bytes)`, and `close()` if it has
an end; or a function that takes the chunks of a body, and returns or yields its results. `feed` and
`close` return a list, yield, return a single result, or None.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

Read: TypeAlias = Callable[[Iterable[bytes]], Iterable[Any]]
"""Reads a body that comes in these chunks, and gives the results as they appear."""

SHAPE: Final = "a parser has feed(bytes) -> list and close() -> list, or is a function of chunks"

POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def fed(make: Callable[[], Any]) -> Read:
    """Reads with a new object for each body, which is fed chunk by chunk and closed."""

    def read(chunks: Iterable[bytes]) -> Iterator[Any]:
        parse = make()
        for chunk in chunks:
            yield from _results(parse.feed(chunk))
        close = getattr(parse, "close", None)
        if close is not None:
            yield from _results(close())

    return read


def _results(output: object) -> Iterable[Any]:
    """What a method gave, as results: an object that is no list and no iterator is one result."""
    if output is None:
        return ()
    if isinstance(output, (list, tuple, Iterator)):
        return output
    return (output,)


def reader_of(parser: Callable[..., Any], name: str | None = None) -> Read:
    """How a parser is read.

    Args:
        parser: the class or function.
        name: its name in errors; None: the one that it has.

    Raises:
        ValueError: it makes no parser.
    """
    name = name or name_of(parser)
    try:
        if _takes_chunks(parser):
            read = _of_function(parser)
            _read_nothing(read)
            return read
        parse = parser()
    except Exception as error:
        raise ValueError(f"{name} could not be made: {type(error).__name__}: {error}") from error
    if not callable(getattr(parse, "feed", None)):
        raise ValueError(  # noqa: TRY004  # the name is wrong, as for an unknown target
            f"{name} gives a {type(parse).__name__}: {SHAPE}"
        )
    return fed(parser)


def _of_function(function: Callable[[Iterator[bytes]], object]) -> Read:
    return lambda chunks: _results(function(iter(chunks)))


def _read_nothing(read: Read) -> None:
    """Raises TypeError for a function that takes something else than chunks."""
    try:
        for _ in read(()):
            pass
    except TypeError:
        raise
    except Exception:  # noqa: BLE001  # it may refuse an empty body: what it does then is its own
        return


def _takes_chunks(parser: Callable[..., Any]) -> bool:
    """Whether it is a function of one argument: of the chunks."""
    if not (inspect.isfunction(parser) or inspect.ismethod(parser)):
        return False
    required = 0
    for parameter in inspect.signature(parser).parameters.values():
        if parameter.kind in POSITIONAL and parameter.default is parameter.empty:
            required += 1
    return required == 1


def comparable(result: Any) -> Any:
    """A result, or its attributes where its class says nothing else: two readings of one body give
    two such objects, which are never equal and whose texts contain addresses."""
    kind: Any = type(result)
    if kind.__repr__ is not object.__repr__:
        return result
    names: Iterable[str] = getattr(result, "__dict__", ())
    if not names:
        names = getattr(kind, "__slots__", ())
    return kind.__qualname__, {name: getattr(result, name, None) for name in names}


def name_of(parser: Callable[..., Any]) -> str:
    """`module:name` of a parser, as `load` takes it."""
    name = getattr(parser, "__qualname__", type(parser).__qualname__)
    return f"{getattr(parser, '__module__', None) or 'builtins'}:{name}"


def error_named(name: str) -> type[Exception]:
    """The class of errors that a name means: one of Python's, or `module.Name`.

    Raises:
        ImportError, AttributeError: the module or the name does not exist.
        ValueError: it is no class of errors.
    """
    module, _, attribute = name.rpartition(".")
    named: Any = getattr(importlib.import_module(module or "builtins"), attribute)
    if not (isinstance(named, type) and issubclass(named, Exception)):
        raise ValueError(f"{name} is no class of errors")  # noqa: TRY004  # a wrong name
    return named


def load(name: str) -> Callable[..., Any]:
    """The class or function that `module:name` names.

    Raises:
        ImportError, AttributeError: the module or the name does not exist.
        ValueError: there is no colon, or what it names cannot be called.
    """
    module, colon, attributes = name.partition(":")
    if not colon:
        raise ValueError(f"{name!r} is not module:name")
    try:
        loaded: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        reason = f"No module named {error.name!r} in the current folder, nor installed"
        raise ModuleNotFoundError(reason, name=error.name) from None
    for part in attributes.split("."):  # a nested class has dots
        loaded = getattr(loaded, part)
    if not callable(loaded):
        raise ValueError(f"{name} is a {type(loaded).__name__}: {SHAPE}")  # noqa: TRY004
    parser: Callable[..., Any] = loaded
    return parser
