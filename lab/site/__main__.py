"""Builds the documentation site, and checks its links and the names in its reference."""

from __future__ import annotations

import sys
import time

from lab.site import SITE, broken_links, build, private_names, write_index_for_models

if __name__ == "__main__":
    began = time.monotonic()
    build()
    write_index_for_models()
    broken = [*broken_links(), *private_names()]
    pages = len(list(SITE.rglob("*.html")))
    seconds = time.monotonic() - began
    sys.stdout.write(
        f"{pages} pages in {seconds:.1f} s, {len(broken)} broken links and private names\n"
    )
    if broken:
        sys.exit("\n".join(broken))
