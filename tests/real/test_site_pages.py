"""Pages of the documentation site in headless Chromium: contrast, keyboard, narrow screens.

The site is built first, as `nox -s docs` does.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from lab import site
from lab.real.ui_readers import HOME, absence_in, chromium
from tests.real.conftest import ABSENT

pytestmark = [pytest.mark.real]

SCRIPT: Final = Path(__file__).with_name("site_pages.mjs")
PAGES: Final = (
    "index.html",
    "command-line.html",
    "reference/asking.html",
    "gateway/routes.html",
    "comparison.html",
    "coming-from/vercel-ai.html",
    "pipeline.html",
)
"""One of each kind: code, sessions, the reference, TOML, a wide table, HTML in Markdown,
pictures."""
WIDE, NARROW = 1280, 400
LOOKS: Final = [("light", WIDE), ("dark", WIDE), ("light", NARROW), ("dark", NARROW)]
each_look = pytest.mark.parametrize(("scheme", "width"), LOOKS)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where the site is served."""
    why = absence_in(HOME, ["playwright-core"]) or (None if chromium() else "there is no chromium")
    if why is not None:
        pytest.skip(f"{ABSENT}: browser, {why}")
    site.build()
    site.write_index_for_models()
    handler = partial(_Quiet, directory=str(site.SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the screenshots go: STREAMLIB_PICTURES keeps them."""
    folder = os.environ.get("STREAMLIB_PICTURES")
    return Path(folder) if folder else tmp_path_factory.mktemp("pictures")


@cache
def seen(
    url: str,
    pictures: Path,
    scheme: str,
    width: int,
    pages: tuple[str, ...] = PAGES,
    words: tuple[str, ...] = ("truncated",),
) -> dict[str, Any]:
    """What one visit saw; each look is visited once."""
    settings = {"url": url, "pages": pages, "words": words, "scheme": scheme, "width": width}
    command = ["node", str(SCRIPT), str(HOME), chromium() or "", str(pictures)]
    asked = json.dumps(settings)
    done = subprocess.run(
        command, input=asked, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@each_look
def test_site_has_contrast_and_fits(url: str, pictures: Path, scheme: str, width: int) -> None:
    look = seen(url, pictures, scheme, width)
    assert look["faint"] == []
    assert look["texts"] > 3000
    assert look["wide"] == []
    assert set(look["scheme"]) == {"default" if scheme == "light" else "slate"}


def test_tables_fit_a_wide_screen(url: str, pictures: Path) -> None:
    """Those of texts: what has a column for each of many libraries is moved sideways."""
    pages = ("PROOF.html", "benchmarks.html", "prompt-fields.html", "providers.html", "index.html")
    assert seen(url, pictures, "light", WIDE, pages, ())["cut"] == []


def test_names_in_tables_are_not_broken(url: str, pictures: Path) -> None:
    assert seen(url, pictures, "light", NARROW, ("names.html",), ())["broken"] == []


@each_look
def test_site_asks_no_other_server(url: str, pictures: Path, scheme: str, width: int) -> None:
    look = seen(url, pictures, scheme, width)
    assert (look["foreign"], look["complaints"]) == ([], [])


@each_look
def test_site_is_used_by_keyboard(url: str, pictures: Path, scheme: str, width: int) -> None:
    look = seen(url, pictures, scheme, width)
    assert look["unseen"] == [], "the focus cannot be seen"
    for path, stops in look["stops"].items():
        assert stops[0] == "page: Skip to content"
        if width == WIDE:
            assert {"header: Search", "tabs: Reference"} <= set(stops), path
    reached = {stop.partition(":")[0] for stops in look["stops"].values() for stop in stops}
    assert {"navigation", "contents", "content", "footer"} <= reached
    # On a narrow screen the search is opened by its key alone.
    assert look["search"] == {"truncated": {"value": "truncated"}}
    assert look["landed"]["truncated"] != f"{url}{PAGES[0]}"
    assert "truncated" in look["landed"]["truncated"]


@each_look
def test_site_rests_where_less_motion_is_wanted(
    url: str, pictures: Path, scheme: str, width: int
) -> None:
    stills = seen(url, pictures, scheme, width)["stills"]
    assert stills
    assert all(name.endswith("-still.svg") for name in stills)


def test_site_is_searched_from_the_disk(url: str, pictures: Path) -> None:
    """A copy of the site without a server: what people look for is found."""
    del url  # the site is built
    home = f"{site.SITE.as_uri()}/"
    found = {
        "mask": "pipeline.html",
        "redact": "pipeline.html",
        "fallback": "pipeline.html",
        "retry": "errors.html",
        "cost": "costs.html",
    }
    look = seen(home, pictures, "light", WIDE, (), tuple(found))
    assert (look["foreign"], look["complaints"]) == ([], [])
    landed = {word: place.split("?")[0] for word, place in look["landed"].items()}
    assert landed == {word: f"{home}{page}" for word, page in found.items()}
