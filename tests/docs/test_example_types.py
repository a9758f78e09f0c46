"""The checks of `example_types` see a mistake in an example, on the line of its page.

All pages are checked by `nox -s examples`, which `.ci/run` calls.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.example_types import type_errors, write_examples
from tests.docs.test_readme import PAGES

pytestmark = pytest.mark.checkers  # seconds of two type checkers: `nox -s examples` runs it

PAGE = """\
# A page

```python
import streamlib

response = streamlib.accumulate([])
print(response.usage.output_tokens)
```

<!-- not run: it needs a key -->
```python
import streamlib

client = streamlib.Client(api_keys="k")
```

<!-- not run: file streamlib/wires/tiny.py -->
```python
    no = program
```
"""


def test_mistakes_of_examples_are_type_errors(tmp_path: Path) -> None:
    """D3: 20 of 41 examples did not type-check."""
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    errors = type_errors([page])
    for line, checkers in ((7, 2), (14, 2)):
        assert len([error for error in errors if f"page.md:{line}:" in error]) == checkers, errors
    assert len(errors) == 4, errors


def test_examples_of_every_page_are_checked(tmp_path: Path) -> None:
    pages = set(write_examples(PAGES, tmp_path).values())
    assert {"README.md", "docs/quick-start.md", "docs/providers.md"} <= pages
