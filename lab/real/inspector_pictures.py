"""Makes the pictures of docs/inspector.md from recordings of this repository.

    python -m lab.real.inspector_pictures

Bodies of `tests/recordings` have no times: those in the pictures are made here.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.node_packages import absence_in
from lab.real.ui_readers import HOME, chromium
from streamlib.inspection import compare, inspect, render
from streamlib.recording import Recording
from tests.support.inspections import body_of, paced
from tests.support.shared import ROOT

IMAGES: Final = ROOT / "docs" / "images"
SCRIPT: Final = Path(__file__).with_name("inspector_page.mjs")
MOST_BYTES: Final = 120_000


def truncated_call() -> Recording:
    """A real model's reasoning and call of a tool, whose connection is lost in its arguments."""
    body = body_of("messages/llama-thinking.sse")
    # A second without bytes, and a second in which the bytes of one frame trickle in.
    pauses = {26: 1.0, 52: 0.35, 53: 0.35, 54: 0.35}
    third_last = body.rsplit(b"partial_json", 3)[0]
    truncated = body[: len(third_last) + 20]
    return paced(truncated, "messages", chunk_bytes=37, pauses=pauses, end="ReadError")


def main() -> int:
    """Writes the pictures; 1 where there is no browser or one is too large."""
    why = absence_in(HOME, ("playwright-core",)) or (None if chromium() else "no chromium")
    if why is not None:
        sys.stderr.write(f"no pictures: {why}\n")
        return 1
    call = inspect(truncated_call(), name="response.jsonl")
    other = inspect(paced(body_of("chat/aimock-tool.sse"), "chat"), name="other.jsonl")
    slower = paced(body_of("chat/llama-tool.sse"), "chat", step=0.05)
    complete = inspect(slower, name="response.jsonl")
    views = {
        "light": (render([call]), "light", False, 1330),
        "dark-phone": (render([call]), "dark", True, 1600),
        "difference": (render([complete, other], compare(complete, other)), "light", False, 820),
    }
    with tempfile.TemporaryDirectory() as folder:
        pages: dict[str, str] = {}
        asked: dict[str, object] = {}
        for name, (html, scheme, phone, height) in views.items():
            path = Path(folder) / f"{name}.html"
            path.write_text(html, encoding="utf-8")
            pages[name] = str(path)
            asked[name] = {"scheme": scheme, "phone": phone, "height": height}
        command = ["node", str(SCRIPT), str(HOME), chromium() or "", folder]
        task = {"task": "pictures", "pages": pages, "views": asked}
        done = subprocess.run(
            command, input=json.dumps(task).encode(), stdout=subprocess.PIPE, check=True
        )
    code = 0
    for name, picture in json.loads(done.stdout)["pictures"].items():
        data = base64.b64decode(picture)
        (IMAGES / f"inspector-{name}.webp").write_bytes(data)
        sys.stdout.write(f"inspector-{name}.webp: {len(data):,} bytes\n")
        if len(data) > MOST_BYTES:
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
