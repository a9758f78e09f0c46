"""`MarkdownWriter` on a terminal: the same screen for every split, and each line written once."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from streamlib.display import MarkdownWriter
from streamlib.display.wrapping import StyledText, cells, wrap
from tests.support.markdown_texts import random_markdown, worst_texts
from tests.support.metrics import figure
from tests.support.screens import Screen, shown, split, written
from tests.support.shared import each_vector
from tests.support.timing import cpu_seconds

OWN = re.compile(r"\x1b\[(?:[0-9;]*m|\d*A|[JK]|\?2026[hl])|\r\n|\r")
"""What the writer itself sends: styles, cursor movements, the marks of a frame."""
CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

ANSWER = """\
# Rivers

The **Rhine** and the *Rhône* rise in the [Alps](https://example.org/alps), and so does `Inn`.

1. one
1. two
   - nested

2. three

> quoted
> text

```python
def flow() -> None:
    return
```

| river | length |
|-------|-------:|
| Rhine | 1,230  |
| Inn   | `518`  |
"""

SCREEN = """\
Rivers

The Rhine and the Rhône rise in the Alps
(https://example.org/alps), and so does Inn.

1. one
2. two
   • nested

3. three

│ quoted text

─── python
def flow() -> None:
    return
───

river  length
─────  ──────
Rhine   1,230
Inn       518
"""


def test_writer_draws_every_kind_of_block() -> None:
    lines = shown([ANSWER], width=48, height=30).lines
    assert "\n".join(lines).rstrip() == SCREEN.rstrip()


SIZES = ((44, 8), (60, 12), (100, 40), (13, 5))


def check_splits(documents: int, lines: int, seed: int) -> None:
    """Compares the screen after several splits with the screen after the whole text."""
    chance = random.Random(seed)
    for _ in range(documents):
        text = random_markdown(chance, lines)
        size = chance.choice(SIZES)
        whole = shown([text], *size)
        for count in (40, 3):
            parts = split(text, chance, count)
            screen = shown(parts, *size)
            assert (screen.lines, screen.styles) == (whole.lines, whole.styles), (parts, size)
            figure("screens after a split", 1)


def test_screen_is_the_same_for_every_split() -> None:
    check_splits(documents=6, lines=4, seed=11)


def check_lines(documents: int, lines: int, seed: int) -> None:
    """The same without an emulator, for every character on its own as well."""
    chance = random.Random(seed)
    for _ in range(documents):
        text = random_markdown(chance, lines)
        size = chance.choice(SIZES)
        whole = written([text], *size)
        for parts in ([*text[:250], text[250:]], split(text, chance, 40)):
            assert written(parts, *size) == whole, (parts, size)
            figure("lines after a split", 1)


def test_lines_are_the_same_for_every_split() -> None:
    check_lines(documents=7, lines=5, seed=13)


def test_row_behind_many_blanks_is_the_same_for_every_split() -> None:
    """Whether a long line is a row was asked of all that one feed brought."""
    text = " " * 500 + "| a | b |" + "x" * 600 + "\n|-|-|\n"
    whole = written([text], 80, 24)
    for cut in (390, 400, 401, 402, 450, 501):
        assert written([text[:cut], text[cut:]], 80, 24) == whole, cut


@pytest.mark.slow
def test_screen_is_the_same_for_every_split_of_many_texts() -> None:
    check_splits(documents=60, lines=10, seed=12)
    check_lines(documents=300, lines=10, seed=14)


def test_each_line_is_written_once_into_the_scrollback() -> None:
    text = "".join(f"- item number {number} **of** a list\n" for number in range(60))
    text += "\n```\n" + "".join(f"code {number}\n" for number in range(60))
    text += "```\n\n| a | b |\n|-|-|\n"
    text += "".join(f"| row {number} | x |\n" for number in range(10, 70)) + "\n"
    text += " ".join(f"word{number}" for number in range(300))
    lines = shown(split(text, random.Random(2), 900), width=40, height=9).lines
    drawn = "\n".join(lines)
    for number in range(60):
        for name in (f"item number {number} of", f"code {number}\n", f"row {number + 10} "):
            assert drawn.count(name) == 1, name
    assert drawn.split()[-300:] == [f"word{number}" for number in range(300)]


def test_long_line_of_code_is_drawn_while_it_comes() -> None:
    """What is left for its end is less than the screen has room for."""
    writer = MarkdownWriter(40, 10)
    drawn = writer.feed("```\n" + "x" * 100)
    for _ in range(100):
        drawn += writer.feed("x" * 100)
    assert OWN.sub("", drawn).count("x") > 10_000
    assert writer.feed("\n```\n").count("x") < 40 * 10


def test_paragraph_of_many_lines_is_drawn_while_it_comes() -> None:
    """It may have more lines than the screen has, and no end yet."""
    lines = [f"line{number}\n" for number in range(200)]
    drawn = MarkdownWriter(40, 10).feed("".join(lines))
    assert "line0 line1 line2 " in OWN.sub("", drawn)


def test_no_word_is_lost() -> None:
    chance = random.Random(3)
    for _ in range(6):
        text = random_markdown(chance, 4)
        text = re.sub("river", lambda _: f"river{chance.randrange(10**9)}", text)
        drawn = "".join(shown(split(text, chance, 9), width=200, height=20).lines)
        for word in re.findall(r"river\d+", text):
            assert word in drawn.replace("│", "")


def test_text_that_continues_is_only_appended() -> None:
    writer = MarkdownWriter(80, 24)
    assert writer.feed("Hello") == "Hello"
    assert writer.feed(", you") == ", you"
    assert writer.feed("") == ""
    assert writer.feed(" **and") == " **and"
    assert writer.feed("**") == "\x1b[?2026h\rHello, you \x1b[1mand\x1b[0m\x1b[K\x1b[?2026l"
    assert writer.close() == "\r\n"
    assert writer.feed("again") == "again"


def test_emphasis_without_an_end_is_text_after_a_while() -> None:
    text = "**" + "word " * 400
    lines = shown(split(text, random.Random(1), 60)).lines
    assert lines[0].startswith("**word word")


def test_paragraph_is_not_cut_where_there_are_two_spaces() -> None:
    """Emphasis without an end is cut at 900 characters: here in the last word, so before it."""
    text = "**" + "word " * 177 + "*two  wordsandmore* end\n"
    assert text.index("*two") < 900 < text.index("* end")
    drawn = " ".join(shown([text, "more\n"], width=80, height=30).lines)
    assert drawn.split()[-4:] == ["two", "wordsandmore", "end", "more"]


def test_long_paragraph_has_its_emphasis_everywhere() -> None:
    screen = shown(["so **strong words** it is `and code` " * 60], width=80, height=12)
    drawn = "".join(screen.lines)
    assert "*" not in drawn
    assert "`" not in drawn


def test_author_breaks_a_line_where_a_paragraph_is_settled() -> None:
    text = "".join(f"line {number} of a poem without an end  \n" for number in range(40))
    parts = split(text, random.Random(4), 60)
    lines = [line for line in shown(parts).lines if line]
    assert lines == [f"line {number} of a poem without an end" for number in range(40)]


@each_vector("terminal_vectors")
def test_writer_is_safe_at_any_split(vector: dict[str, Any]) -> None:
    text = vector["t"]
    for index in range(len(text) + 1):
        writer = MarkdownWriter(60, 10)
        output = writer.feed(text[:index]) + writer.feed(text[index:]) + writer.close()
        assert not CONTROLS.search(OWN.sub("", output))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[bank](https://evil.example/a)", "bank (https://evil.example/a)"),
        ("[b](https://p\u0430ypal.com)", "b (https://xn--pypal-4ve.com)"),
        ("<https://example.org/x>", "https://example.org/x"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("a&#x202E;b", "a\\u202eb"),
        ("![tracker](http://e.org/p.png)", "[image: tracker] (http://e.org/p.png)"),
    ],
)
def test_link_shows_its_address(text: str, expected: str) -> None:
    assert shown([text]).lines[0] == expected


def test_rule_and_heading_have_empty_lines_around_them() -> None:
    """Models often leave out those around a heading."""
    lines = shown(["one\n\n---\n\ntwo"], width=30).lines
    assert lines[:5] == ["one", "", "─" * 29, "", "two"]
    assert shown(["one\n# Two\nthree"]).lines[:5] == ["one", "", "Two", "", "three"]
    assert shown(["One\n===\ntwo"]).lines[:3] == ["One", "", "two"]


def test_heading_of_the_first_level_is_underlined() -> None:
    for text in ("# One\n\n## Two\n", "One\n===\n\nTwo\n---\n"):
        lines = written([text], 60, 12)
        assert lines[:3] == ["\x1b[1;4mOne\x1b[0m", "", "\x1b[1mTwo\x1b[0m"], text


def test_text_in_many_quotes_keeps_some_room() -> None:
    """Their bars are shortened: one word a line would be no text."""
    assert shown(["> " * 14 + "word word"], width=30).lines[0] == "… word word"
    assert shown(["> " * 3 + "word word"], width=30).lines[0] == "│ │ │ word word"


def test_row_of_a_table_that_is_too_wide_is_a_list() -> None:
    names = [f"name{number}" for number in range(8)]
    rows = [names, ["---"] * 8, [name.upper() for name in names]]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    lines = shown([table], width=30, height=30).lines
    assert lines[:9] == [*(f"{name}: {name.upper()}" for name in names), ""]


def test_first_ten_rows_of_a_table_give_its_widths() -> None:
    for wide_row, width in ((10, len("wide cell")), (11, 1)):
        rows = ["wide cell" if number == wide_row else "x" for number in range(1, 13)]
        table = "| a |\n|---|\n" + "".join(f"| {row} |\n" for row in rows)
        assert shown([table], height=30).lines[1] == "─" * width, wide_row


def test_last_cell_of_a_very_long_row_goes_on() -> None:
    text = "| a | b |\n|---|---|\n| x | " + "word " * 1500 + "|\n"
    header, _, first, *others = shown([text], width=60).lines
    assert (header, first[:3]) == ("a  b", "x  ")
    assert {line[:3] for line in others} == {"   ", ""}
    assert sum(line.count("word") for line in [first, *others]) == 1500


def test_wide_characters_are_wrapped_one_by_one() -> None:
    lines = wrap([StyledText("xxxx 漢字漢字", "")], 8)
    assert ["".join(part.text for part in line) for line in lines] == ["xxxx 漢", "字漢字"]
    lines = wrap([StyledText("xxxx 漢ééé", "")], 8)
    assert ["".join(part.text for part in line) for line in lines] == ["xxxx 漢", "ééé"]


def test_tab_goes_to_the_next_multiple_of_four() -> None:
    assert shown(["```\na\tb\n```"]).lines[1] == "a   b"


def test_resize_between_paragraphs_counts_for_the_next() -> None:
    for width in (30, 80):
        writer = MarkdownWriter(60, 12)
        writer.feed("one\n\n")
        writer.resize(width, 12)
        text = OWN.sub("", writer.feed("word " * 40 + "\n\n").replace("\r\n", "\n"))
        lines = [line for line in text.splitlines() if "word" in line]
        assert max(map(len, lines)) in range(width - 6, width)


def test_accent_takes_no_column() -> None:
    accented = "e\u0301"
    assert [cells(text) for text in (accented * 4, "日本", "e\ufe0f")] == [4, 4, 2]


def test_mono_theme_has_no_colours() -> None:
    writer = MarkdownWriter(80, 24, "mono")
    output = writer.feed(ANSWER) + writer.close()
    assert not re.search(r"\x1b\[(?:\d+;)*[34][0-7]m", output)
    assert "\x1b[1m" in output


# --- another size ---


def test_resize_leaves_no_stray_line_when_the_terminal_grows() -> None:
    for size in ((80, 12), (60, 20), (90, 30)):
        screen, writer = Screen(60, 12), MarkdownWriter(60, 12)
        text = "one two **three** four " * 12
        screen.write(writer.feed(text[:150]))
        screen.resize(*size)
        screen.write(writer.resize(*size))
        screen.write(writer.feed(text[150:]))
        screen.write(writer.close())
        drawn = " ".join(screen.lines).split()
        assert drawn == text.replace("*", "").split()


def test_resize_to_the_same_size_changes_nothing() -> None:
    writer = MarkdownWriter(60, 12)
    screen = Screen(60, 12)
    for part in split(ANSWER, random.Random(5), 30):
        screen.write(writer.feed(part))
        screen.write(writer.resize(60, 12))
    screen.write(writer.close())
    assert screen.lines == shown([ANSWER]).lines


def test_resize_before_the_first_text_counts() -> None:
    writer = MarkdownWriter(60, 12)
    screen = Screen(30, 12)
    screen.write(writer.resize(30, 12))
    screen.write(writer.feed("word " * 12) + writer.close())
    assert max(len(line.rstrip()) for line in screen.lines) == 29


def test_resize_wraps_what_follows_at_the_new_width() -> None:
    writer = MarkdownWriter(60, 12)
    writer.feed("word " * 100)
    screen = Screen(30, 12)
    screen.write(writer.resize(30, 12))
    screen.write(writer.feed("word " * 100) + writer.close())
    assert max(map(len, screen.lines)) < 30


# --- what it costs ---


@pytest.mark.timing
@pytest.mark.parametrize("kind", ["fence", "list", "table", "paragraph"])
def test_frame_of_a_long_block_takes_little_time(kind: str) -> None:
    """50 KB in 600 frames would take 2 s each; a quarter of it shows the same cost a frame."""
    text = worst_texts(12_000)[kind]
    frames = [text[start : start + 80] for start in range(0, len(text), 80)]
    written: list[int] = []

    def write() -> None:
        writer = MarkdownWriter(100, 40)
        written.append(sum(len(writer.feed(frame)) for frame in frames) + len(writer.close()))

    seconds = cpu_seconds(write, tries=2) / len(frames)
    figure(f"milliseconds a frame, {kind}", seconds * 1000)
    assert seconds < 0.003
    assert written[0] < 4 * len(text)


@pytest.mark.timing
def test_frame_costs_the_same_however_long_the_text_is() -> None:
    for kind, text in worst_texts(20_000).items():
        times: list[float] = []
        for size in (5_000, 20_000):
            frames = [text[start : start + 80] for start in range(0, size, 80)]

            def write(frames: list[str] = frames) -> None:
                writer = MarkdownWriter(100, 40)
                for frame in frames:
                    writer.feed(frame)

            times.append(cpu_seconds(write, tries=2) / len(frames))
        assert times[1] < 2.3 * times[0], kind


@pytest.mark.timing
def test_long_line_in_one_feed_takes_linear_time() -> None:
    """What was left of it was copied for each of its parts."""

    def seconds(size: int) -> float:
        return cpu_seconds(lambda: MarkdownWriter(80, 24).feed("    " + "x" * size), tries=2)

    seconds(2_000_000)
    assert min(seconds(4_000_000) / seconds(1_000_000) for _ in range(3)) < 6


HOSTILE: dict[str, str] = {
    "markers": "* " * 10_000,
    "quotes": "> " * 10_000,
    "definitions": "".join([f"[a{number}]: http://x/{number}\n" for number in range(3000)]),
}


@pytest.mark.timing
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_bounded_time_a_feed(name: str) -> None:
    """In deltas of 40 characters, as models send them: some milliseconds each."""
    text = HOSTILE[name]
    writer = MarkdownWriter(80, 24)
    deltas = [text[start : start + 40] for start in range(0, len(text), 40)]

    def feed() -> None:
        for delta in deltas:
            writer.feed(delta)

    assert cpu_seconds(feed) / len(deltas) < 0.006


def test_markers_are_text_beyond_a_depth() -> None:
    text = "".join(written(["* " * 30 + "end\n"], 200, 24))
    assert "* " * 9 + "end" in text
