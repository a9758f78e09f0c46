"""StepFun's plan: https://platform.stepfun.ai/docs.

Outside the plan: `base_url="https://api.stepfun.ai/v1"`.
"""

from __future__ import annotations

from msgspec.structs import replace

from streamlib.providers import Provider
from streamlib.providers.shapes import EFFORT, ChatShape

PROVIDER = Provider(
    name="stepfun",
    parses_calls=True,
    aliases=("step",),
    base_url="https://api.stepfun.ai/step_plan/v1",
    key_env=("STEPFUN_API_KEY",),
    chat=ChatShape(
        thinking=replace(
            EFFORT, off=None, words={"minimal": "low", "xhigh": "high", "max": "high"}
        ),
        custom_tools=False,
    ),
)
