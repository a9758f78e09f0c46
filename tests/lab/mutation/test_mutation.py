"""Deliberate defects: what they change, where they are, and that every file has a part."""

from __future__ import annotations

import ast

from lab.coverage_by_part.parts import PARTS, files_of, files_of_tests
from lab.mutation.__main__ import sample
from lab.mutation.defects import mutable_nodes, mutate
from lab.mutation.worker import can_be_swapped
from tests.support.cases import each_case

SOURCE = '''\
LIMIT: int = 3


class Page:
    size: int = 5

    def rows(self, most: int = 7) -> bool | None:
        """Rows."""
        if most < 2 and self.size:
            self.close()
        return True
'''


def defects(source: str) -> dict[str, str]:
    """What each defect changes -> what its code defines at import."""
    count = len(list(mutable_nodes(ast.parse(source))))
    made = [mutate(source, number) for number in range(count)]
    return {f"{defect.lines.start}: {defect.text}": defect.name for defect in made}


def test_every_defect_is_named_with_its_line() -> None:
    assert defects(SOURCE) == {
        "1: 3 -> 4": "LIMIT",
        "5: 5 -> 6": "size",
        "7: 7 -> 8": "rows",
        "9: if most < 2 and self.size: -> if not (most < 2 and self.size):": "",
        "9: most < 2 and self.size -> most < 2 or self.size": "",
        "9: most < 2 -> most <= 2": "",
        "9: 2 -> 3": "",
        "10: removed self.close()": "",
        "11: True -> False": "",
    }


def test_defects_of_the_same_text_have_other_columns() -> None:
    """One of the two was not counted."""
    made = [mutate("pair = (1, 1)\n", number) for number in range(2)]
    assert [(defect.text, defect.column) for defect in made] == [("1 -> 2", 9), ("1 -> 2", 12)]


def test_what_never_runs_gets_no_defect() -> None:
    source = """\
if TYPE_CHECKING:
    LIMIT = 3


class Page(Struct, frozen=True):
    @overload
    def rows(self, most: int = 7) -> None: ...
"""
    assert defects(source) == {}


def test_method_without_its_super_is_imported_again() -> None:
    """Python refuses to swap its code, and the whole run ended there."""
    source = "class Page:\n    def close(self):\n        super().close()\n        self.end()\n"
    made = [mutate(source, number) for number in range(2)]
    assert {defect.text: can_be_swapped(source, defect) for defect in made} == {
        "removed super().close()": False,
        "removed self.end()": True,
    }


def test_sample_of_a_part_is_always_the_same() -> None:
    mutants, possible = sample("tools")
    assert (mutants, possible) == sample("tools")
    assert len({mutant.text for mutant in mutants}) == len(mutants) == 40


@each_case("part", PARTS)
def test_part_has_files_and_tests(part: str) -> None:
    assert files_of(part)
    assert files_of_tests(part)
