"""A real model on 127.0.0.1: llama.cpp's own server, from the wheel `xllamacpp`, with Chat,
Messages and Responses.

    python llama_server.py MODEL.gguf chat_template.jinja

Prints `LISTEN <address>` when it is ready and ends when its standard input does. Two requests at a
time, 1,024 tokens each. A model as small as SmolLM2-135M calls tools only at temperature 0 and
after three worked examples, and its own template knows no tools: llama.cpp reads from
`chat_template.jinja` how calls and thoughts are written, and takes them out of the text again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import xllamacpp


def settings(model: str, template: str) -> xllamacpp.CommonParams:
    """One thread, no network, no surprise."""
    chosen = xllamacpp.CommonParams()
    chosen.model.path = model
    chosen.model_alias = {"smollm2"}
    chosen.hostnames = ["127.0.0.1"]
    chosen.port = 0  # the system chooses
    chosen.offline = True
    chosen.n_parallel = 2
    chosen.n_ctx = 2 * 1024
    chosen.cpuparams.n_threads = 1
    chosen.use_jinja = True
    chosen.chat_template = Path(template).read_text(encoding="utf-8")
    return chosen


if __name__ == "__main__":
    server = xllamacpp.Server(settings(*sys.argv[1:]))
    sys.stdout.write(f"LISTEN {server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
