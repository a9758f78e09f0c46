"""The program that docs/web.md begins with, asked with the curl lines that follow it."""

from __future__ import annotations

import re
import shlex
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from streamlib import Client
from streamlib.testing import loopback
from tests.support.shared import ROOT

PAGE: Final = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")
PROGRAM: Final = re.compile(r"(?ms)<!-- file: app\.py -->\n```python\n(.*?)^```$")


async def test_curl_lines_of_the_web_page_get_a_response() -> None:
    """The page said "start it with uvicorn", and had no application to start."""
    [code] = PROGRAM.findall(PAGE)
    namespace: dict[str, Any] = {"__name__": "app"}
    exec(compile(code, "app.py", "exec", dont_inherit=True), namespace)
    app = namespace["app"]
    lines = [shlex.split(line) for line in PAGE.splitlines() if line.startswith("curl -N ")]
    assert [urlsplit(url).path for _, _, url, _, _ in lines] == ["/api/chat", "/agent"]
    async with app.router.lifespan_context(app), loopback() as client:
        assert isinstance(app.state.client, Client)
        app.state.client = client  # `streamlib serve`, on a port of its own
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport) as page:
            for _, _, url, _, body in lines:
                # The type of the body that curl sends.
                headers = {"content-type": "application/x-www-form-urlencoded"}
                response = await page.post(url, content=body, headers=headers)
                assert response.status_code == 200, response.text
                assert "said:" in response.text
                assert '"errorText"' not in response.text
