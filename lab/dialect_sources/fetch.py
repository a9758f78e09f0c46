"""Fetches the newest distributions of the servers from the package index, by pip."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

# vLLM's wheel has ten times the size of its sources, whose metadata pip wants to build with
# vLLM's own setup: this back end answers instead, from a file that every distribution has.
_BACK_END: Final = '''"""Tells pip the metadata without running anything of the distribution."""

import email
import pathlib


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = email.message_from_string(pathlib.Path("PKG-INFO").read_text(encoding="utf-8"))
    name = f"{info['Name']}-{info['Version']}.dist-info"
    metadata = pathlib.Path(folder, name)
    metadata.mkdir()
    text = f"Metadata-Version: 2.1\\nName: {info['Name']}\\nVersion: {info['Version']}\\n"
    (metadata / "METADATA").write_text(text, encoding="utf-8")
    (metadata / "WHEEL").write_text("Wheel-Version: 1.0\\n", encoding="utf-8")
    return name
'''
SOURCES_ONLY: Final = ("--no-binary", ":all:", "--no-build-isolation")
OPTIONS: Final = {"vLLM": SOURCES_ONLY, "SGLang": ()}
"""By server: options of pip. SGLang's wheel is small."""


def fetch(server: str, folder: Path) -> Path:
    """Downloads the newest distribution of a server.

    Args:
        server: `vLLM` or `SGLang`; its package is named like it.
        folder: an empty folder.

    Raises:
        CalledProcessError: pip failed; it has printed why.
    """
    back_end = folder / "back_end" / "setuptools"
    back_end.mkdir(parents=True)
    (back_end / "__init__.py").write_text("", encoding="utf-8")
    (back_end / "build_meta.py").write_text(_BACK_END, encoding="utf-8")
    downloads = folder / "downloads"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d"]
    subprocess.run(
        [*command, str(downloads), *OPTIONS[server], server.lower()],
        check=True,
        env={**os.environ, "PYTHONPATH": str(back_end.parent)},
    )
    return next(downloads.iterdir())
