"""Amazon Bedrock.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html

The region comes from the environment; `base_url=` names any other endpoint (FIPS, a VPC, a proxy).
Converse serves every model; Invoke has Claude's own Messages body; Messages, Chat and Responses are
endpoints that Bedrock serves beside its own API.
"""

from __future__ import annotations

from streamlib.providers import Provider

RUNTIME = "https://bedrock-runtime.{region}.amazonaws.com"

PROVIDER = Provider(
    name="bedrock",
    parses_calls=True,
    aliases=("aws", "aws-bedrock"),
    wires=("converse", "invoke", "messages", "chat", "responses"),
    base_url=RUNTIME,
    wire_urls={
        "messages": "https://bedrock-mantle.{region}.api.aws/anthropic",
        "chat": f"{RUNTIME}/openai/v1",
        "responses": f"{RUNTIME}/openai/v1",
    },
    auth="aws",
    url_variables={"region": ("AWS_REGION", "AWS_DEFAULT_REGION")},
    headers={"anthropic-version": "2023-06-01"},  # Messages requires it, the other wires ignore it
)
