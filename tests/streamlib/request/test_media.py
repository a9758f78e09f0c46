"""The media type of an image: its bytes decide, and a correction is reported."""

from __future__ import annotations

from streamlib import (
    WIRE_APIS,
    FunctionCall,
    Image,
    Prompt,
    build,
    parse_request,
    user,
)

PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000")


def test_a_corrected_media_type_is_reported_on_every_wire() -> None:
    """All wires but Messages changed it without a word."""
    call = FunctionCall("c", "look", "{}")
    wrong, right = (Image(data=PNG, media_type=f"image/{kind}") for kind in ("jpeg", "png"))
    for wire_api in WIRE_APIS:
        model = "custom:m"
        if wire_api in ("converse", "invoke"):
            model = "custom:anthropic.claude-opus-4-1"
        for image, count in ((wrong, 1), (right, 0)):
            history = [user("look", image), call, call.output((image,))]
            request = build(Prompt(history), model, wire_api=wire_api, base_url="http://x")
            paths = [
                change.path
                for change in request.report
                if "the bytes are image/png" in change.reason
            ]
            expected = ["/input/0", "/input/2"] if count and wire_api != "ollama" else []
            assert paths == expected, wire_api


def test_a_corrected_type_of_a_decoded_request_is_reported() -> None:
    image = Image(data=PNG, media_type="image/gif")
    raw = build(Prompt([user("look", image)]), "openai:gpt-5", wire_api="chat").body
    decoded = parse_request("chat", raw.replace(b"image/png", b"image/gif"))
    report = build(decoded, "openai:gpt-5", wire_api="chat").report
    assert [change.path for change in report] == ["/input/0"]
