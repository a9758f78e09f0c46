"""What a Gemini request holds beside the fields of `Prompt` is sent again (invariant 12, B3)."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from streamlib import Prompt, Request, build, parse_request

HI: Final = {"role": "user", "parts": [{"text": "hi"}]}
OPENAPI: Final = {
    "type": "OBJECT",
    "properties": {"a": {"type": "STRING", "nullable": True, "example": "b"}},
    "propertyOrdering": ["a"],
}


def decoded(contents: list[Any], **settings: Any) -> Prompt:
    body = msgspec.json.encode({"contents": contents, **settings})
    return parse_request("gemini", body, path="/v1beta/models/m:generateContent")


def built(prompt: Prompt) -> Request:
    return build(prompt, "custom:m", wire_api="gemini", base_url="http://127.0.0.1")


def rebuilt(contents: list[Any], **settings: Any) -> Any:
    request = built(decoded(contents, **settings))
    assert request.report == []
    return msgspec.json.decode(request.body)


def declaring(**declaration: Any) -> list[Any]:
    return [{"functionDeclarations": [{"name": "f", **declaration}]}]


@pytest.mark.parametrize(
    "setting",
    [
        {"tools": declaring(parameters=OPENAPI)},
        {"tools": declaring(response=OPENAPI, behavior="BLOCKING")},
        {"tools": declaring(responseJsonSchema={"type": "string"})},
        {
            "generationConfig": {
                "responseMimeType": "application/json",
                "responseSchema": OPENAPI,
            }
        },
        {"generationConfig": {"logprobs": 3}},
        {"systemInstruction": {"role": "user", "parts": [{"text": "a", "partMetadata": {"b": 1}}]}},
    ],
)
def test_setting_is_sent_again(setting: dict[str, Any]) -> None:
    body = rebuilt([HI], **setting)
    assert {key: body.get(key) for key in setting} == setting


def test_media_of_a_result_keep_their_fields() -> None:
    data = {"mimeType": "image/png", "data": "iVBORw0KGgo="}
    fragment = {"inlineData": data, "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}}
    contents = [
        HI,
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "f",
                        "id": "i",
                        "response": {"output": "a"},
                        "parts": [fragment],
                    }
                }
            ],
        },
    ]
    assert rebuilt(contents)["contents"] == contents


def test_another_output_schema_replaces_the_one_decoded() -> None:
    config = {"responseMimeType": "application/json", "responseSchema": OPENAPI}
    prompt = decoded([HI], generationConfig={**config, "mediaResolution": "MEDIA_RESOLUTION_LOW"})
    schema = {"type": "object", "properties": {"b": {"type": "string"}}}
    request = built(msgspec.structs.replace(prompt, output_schema=schema))
    assert msgspec.json.decode(request.body)["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": schema,
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
    }
    path = "/extra/generationConfig/responseSchema"
    assert [change.path for change in request.report] == [path]


def test_another_schema_of_a_tool_replaces_the_one_decoded() -> None:
    prompt = decoded([HI], tools=declaring(parameters=OPENAPI))
    schema = {"type": "object", "properties": {"b": {"type": "string"}}}
    tool = msgspec.structs.replace(prompt.tools[0], schema=schema)
    request = built(msgspec.structs.replace(prompt, tools=[tool]))
    assert msgspec.json.decode(request.body)["tools"] == declaring(parametersJsonSchema=schema)
    assert [change.path for change in request.report] == ["/tools/0/options/native/parameters"]


def test_schemas_of_openapi_are_kept_on_another_wire() -> None:
    config = {"responseMimeType": "application/json", "responseSchema": {"type": "OBJECT"}}
    prompt = decoded([HI], generationConfig=config, tools=declaring(parameters={"type": "OBJECT"}))
    assert build(prompt, "openai:gpt-4.1", wire_api="responses").report == []
