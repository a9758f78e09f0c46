"""The fuzzing loop: it finds what is broken, makes it small, writes a test that fails; and it finds nothing in what is whole."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from streamlib.cli import main
from streamlib.testing.dialect_calls import CALLS
from streamlib.testing.fuzz_targets import TARGETS, find_target
from streamlib.testing.fuzzing import (
    Campaign,
    Finding,
    examine,
    find_failure,
    replay_bodies,
    reproducer,
    shrink,
)
from streamlib.testing.invariants import InvariantViolation
from streamlib_parsers.dialects.definitions import DIALECTS
from streamlib_parsers.framing.eventstream import encode_message
from streamlib_parsers.protocol import WIRE_APIS
from tests.fuzz.oracles import SECOND, judged


class Lines:
    """A line reader that forgets a carriage return at the end of a chunk."""

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        *lines, self._tail = (self._tail + chunk.replace(b"\r\n", b"\n")).split(b"\n")
        return lines

    def close(self) -> list[bytes]:
        return [self._tail] if self._tail else []


class Raises:
    """A parser from which an exception escapes."""

    def feed(self, chunk: bytes) -> list[int]:
        return [1 // 0] if b"data: [DONE]" in chunk else []

    def close(self) -> list[int]:
        return []


class Whole:
    """A parser with nothing to forget."""

    def __init__(self) -> None:
        self._body = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        self._body += chunk
        return []

    def close(self) -> list[bytes]:
        return [self._body]


@pytest.fixture
def mine() -> Iterator[str]:
    """A module of the user's own, with three parsers."""
    module = ModuleType("parsers_of_a_user")
    module.Lines, module.Raises, module.Whole = Lines, Raises, Whole  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    yield module.__name__
    del sys.modules[module.__name__]


def found_in(name: str, executions: int = 5_000) -> Finding:
    campaign = Campaign(find_target(name), seed=1)
    rng = random.Random(1)
    while campaign.finding is None and campaign.executions < executions:
        campaign.try_one(campaign.target.seed(rng), rng)
    assert campaign.finding is not None
    return campaign.finding


def test_what_depends_on_the_cut_is_found_and_made_as_small_as_can_be(mine: str) -> None:
    small = shrink(find_target(f"{mine}:Lines"), found_in(f"{mine}:Lines"))
    assert (small.invariant, small.body, small.places) == ("any cut", b"\r\n", (1,))


def test_an_exception_that_escapes_is_found_and_made_as_small_as_can_be(mine: str) -> None:
    small = shrink(find_target(f"{mine}:Raises"), found_in(f"{mine}:Raises"))
    assert (small.invariant, small.body) == ("ZeroDivisionError", b"data: [DONE]")


def test_the_reproducer_fails_until_the_parser_is_mended(
    mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = shrink(find_target(f"{mine}:Lines"), found_in(f"{mine}:Lines"))
    written: dict[str, object] = {}
    exec(compile(reproducer(small), "test_fuzz.py", "exec"), written)
    (test,) = [value for name, value in written.items() if name.startswith("test_")]
    with pytest.raises(InvariantViolation, match="any cut"):
        test()  # type: ignore[operator]
    monkeypatch.setattr(sys.modules[mine], "Lines", Whole)
    test()  # type: ignore[operator]


def test_a_reproducer_of_odd_bytes_and_words_is_python_all_the_same() -> None:
    text = reproducer(
        Finding("a:b.c", "any cut", 'says """ \\ \n \ud83d', bytes(range(256)), (1, 2))
    )
    written: dict[str, object] = {}
    exec(compile(text.replace("def test_", "def kept_"), "test_fuzz.py", "exec"), written)
    assert written["BODY"] == bytes(range(256))


def test_the_command_writes_a_reproducer_and_says_so_by_its_exit_code(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            ["fuzz", f"{mine}:Lines", "--time", "20", "--seed", "1", "--out", str(tmp_path / "new")]
        )
        == 1
    )
    said = capsys.readouterr()
    (written,) = (tmp_path / "new").iterdir()
    assert str(written) in said.out
    assert "seed 1" in said.err
    assert r"b'\r\n'" in written.read_text(encoding="utf-8")


def test_the_command_is_content_with_what_is_whole(
    mine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = tmp_path / "seed"
    seed.write_bytes(b"data: 1\n\n")
    assert main(["fuzz", f"{mine}:Whole", str(seed), "--time", "0.2"]) == 0
    assert "nothing broke" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["nonsense"], 2, "no target 'nonsense': one of messages"),
        (["no_such_module:parser"], 2, "No module named"),
        (["json:nothing"], 2, "nothing"),
        (["os:getcwd"], 2, "gives a str: a parser has feed(bytes)"),
        (["json:loads"], 2, "could not be made: TypeError"),
        (["chat", "/no/such/file"], 1, "/no/such/file: No such file"),
        (["chat", "--out", "/dev/null"], 1, "/dev/null: Not a directory"),
    ],
)
def test_a_wrong_word_is_told_in_one_line(
    arguments: list[str], code: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fuzz", *arguments]) == code
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1


def test_the_same_seed_is_the_same_hunt() -> None:
    def hunt() -> list[bytes]:
        rng = random.Random(7)
        what = find_target("chat")
        return [what.change(what.seed(rng), rng) for _ in range(30)]

    assert hunt() == hunt()


def test_every_wire_framing_and_dialect_can_be_fuzzed() -> None:
    assert set(TARGETS) >= {
        *WIRE_APIS,
        "sse",
        "ndjson",
        "eventstream",
        "json_array",
        "sse_or_json",
        *DIALECTS,
    }


@pytest.mark.parametrize("name", TARGETS)
def test_a_short_hunt_finds_nothing(name: str) -> None:
    """Sixty bodies each, other ones than yesterday's would be found by the long form and by atheris."""
    campaign = Campaign(find_target(name), cuts=1)
    rng = random.Random(name)
    for _ in range(20):
        body = campaign.target.seed(rng)
        for one in (body, campaign.target.change(body, rng), campaign.target.change(body, rng)):
            campaign.try_one(one, rng)
            assert campaign.finding is None, reproducer(campaign.finding)
    assert campaign.kinds > 1


@pytest.mark.parametrize("name", DIALECTS)
def test_the_sample_of_a_dialect_is_one_of_its_calls(name: str) -> None:
    kinds = {type(event).__name__ for event in find_target(name).read([CALLS[name].encode()])}
    assert kinds & {"FunctionCallArgumentsDelta", "ReasoningContentDelta"}


@pytest.mark.parametrize("name", SECOND)
def test_a_second_reader_finds_the_same_in_any_body(name: str) -> None:
    """The judges of `python -m tests.fuzz`, on bodies of a seed."""
    what = judged(find_target(name))
    rng = random.Random(name)
    for _ in range(25):
        body = what.change(what.seed(rng), rng)
        what.oracle(body, what.read([body]))
        with pytest.raises(InvariantViolation, match="oracle"):
            what.oracle(EXTRA[name] + body, what.read([body]))


EXTRA = {
    "sse": b"data: more\n\n",
    "ndjson": b"{}\n",
    "eventstream": encode_message({":event-type": "chunk", ":message-type": "event"}, b"more"),
}


KEPT = [
    ("messages", b'data:{"type":"content_block_delta","index":0,"delta":{"type":{}}}\n\n'),
    ("messages", b'data:{"type":"content_block_start","index":0,"content_block":{"":"","":[{"":"\xdc"}]}}\n\n'),
    ("messages", b'data:{"type":"message_start","message":{"id":{"":null},"model":7}}\n\n'),
    ("messages", b'data:{"type":"\\ud83d"}\n\ndata:{"type":"content_block_start","index":0,"content_block":{"type":"thinking","signature":-1}}'),
    ("messages", b'data:{"type":"content_block_start","index":0,"content_block":{"type":"text","citations":5}}\n\n'),
    ("responses", b'data:{"type":"response.output_text.delta","delta":"","logprobs":[[]]}\n\n'),
    ("responses", b'data:{"type":"response.refusal.delta","delta":"a"}\n\ndata:{"type":"response.output_text.delta","delta":"a"}\n\n'),
    ("responses", b'data:{"type":"response.refusal.delta","":1,"delta":"8"}\n\ndata:{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text"}]}}\n\n'),
    ("ollama", b'{"message":{"tool_calls":[{"":{"":"\xff"},"function":{"name":"f","":"\xff","arguments":{}}}]},"done":false}\n'),
    ("messages", b'{"type":"message","content":{"":null}}'),
    ("chat", b'data:{"choices":[{"delta":{"audio":{"data":"UJd83d\\ude00"}}}]}\n\ndata:{"choices":[{"delta":{"audio":{"data":"D"}}}]}'),
]  # fmt: skip
# bytes as they were found
"""Bodies on which a wire broke, before it was mended: a foreign exception, a field of the wrong type, a text that was lost."""


@pytest.mark.parametrize(
    ("name", "body"), KEPT, ids=lambda value: value if isinstance(value, str) else str(len(value))
)
def test_what_was_found_once_stays_mended(name: str, body: bytes) -> None:
    assert find_failure(find_target(name), body) is None


def test_kept_bodies_can_be_replayed() -> None:
    assert replay_bodies("chat", [b"", b"data: [DONE]\n\n"]) == []
    examine(find_target("chat"), b"data: {}\n\n", [1, 5])
