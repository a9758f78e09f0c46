"""What cannot be meant fails where it is written: the word that was written, and the one to write.

Each row is a mistake with the type of its error. Those of a request are made through `build`,
`Client` and `SyncClient`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import httpx
import msgspec
import pytest

import streamlib
from streamlib import (
    Client,
    FunctionCall,
    History,
    Image,
    Message,
    Prompt,
    Response,
    RetryPolicy,
    SyncClient,
    Text,
    ToolSpec,
    user,
)
from streamlib.tools import agent
from streamlib.wires.decoders import parse_request
from streamlib_parsers.hosted_tools import HostedTool
from streamlib_parsers.items import CustomToolCall
from streamlib_parsers.stream_error import StreamError
from tests.support.cases import each_case

MODEL: Final = "openai:gpt-5"
UNTYPED: Final[Any] = Message
"""The class, for values that its types forbid."""


def look(place: str) -> str:
    """Looks at a place."""
    return place


class Mistake(NamedTuple):
    """A mistake: what makes it, its error, the word that was written, the word to write."""

    make: Callable[[], object]
    error: type[Exception]
    written: str
    meant: str


def prompt(meant: str, error: Any = TypeError, **fields: Any) -> Mistake:
    """A wrong name or value of a prompt."""
    return Mistake(lambda: Prompt(**{"input": "hi", **fields}), error, next(iter(fields)), meant)


def client(kind: Any, meant: str, error: Any = TypeError, **options: Any) -> Mistake:
    """A wrong name or value of a client."""
    return Mistake(lambda: kind(**options), error, next(iter(options)), meant)


def of_stream(kind: Any, meant: str, **options: Any) -> Mistake:
    """A wrong option of one request."""
    return Mistake(
        lambda: kind(api_key="k").stream("hi", MODEL, **options),
        TypeError,
        next(iter(options)),
        meant,
    )


def built(meant: str, written: str, **options: Any) -> dict[str, Mistake]:
    """A wrong request, through everything that builds one."""
    rows: dict[str, Mistake] = {}
    given: dict[str, Any] = {"prompt": "hi", "model": MODEL, **options}
    makers: dict[str, Callable[[], object]] = {
        "build": lambda: streamlib.build(**given),
        "Client": lambda: Client(api_key="k").stream(**given),
        "SyncClient": lambda: SyncClient(api_key="k").stream(**given),
    }
    for name, make in makers.items():
        rows[f"{name}: {written}"] = Mistake(make, StreamError, written, meant)
    return rows


def any_call(function: Callable[..., object], *values: Any, **named: Any) -> Callable[[], object]:
    """A call that its types forbid."""
    return lambda: function(*values, **named)


CALL: Final = FunctionCall("c", "look", "{}")

MISTAKES: Final[dict[str, Mistake]] = {
    # names of other libraries
    **{
        f"Prompt({written}=)": prompt(meant, **{written: "x"})
        for written, meant in {
            "system": "instructions",
            "system_prompt": "instructions",
            "system_instruction": "instructions",
            "max_tokens": "max_output_tokens",
            "max_completion_tokens": "max_output_tokens",
            "num_predict": "max_output_tokens",
            "messages": "input",
            "contents": "input",
            "functions": "tools",
            "response_format": "output_schema",
            "response_model": "output_schema",
            "stop_sequences": "stop",
            "thinking": "reasoning",
            "reasoning_effort": "reasoning",
            "parallel_tool_calls": "parallel_tools",
            "user": "user_id",
            "top_logprobs": "logprobs",
            "extra_body": "extra",
            "extra_headers": "headers",
            "candidate_count": "n",
            "temprature": "temperature",
            "instruction": "instructions",
            "timeout": "Deadlines",
            "max_retries": "RetryPolicy",
            "api_key": "client.stream(…, api_key=…)",
        }.items()
    },
    **{
        f"{kind.__name__}({written}=)": client(kind, meant, **{written: 3})
        for kind in (Client, SyncClient)
        for written, meant in {
            "timeout": "Deadlines",
            "max_retries": "RetryPolicy",
            "model": "Prompt(model=…)",
            "temperature": "Prompt(temperature=…)",
            "url": "base_url",
            "default_headers": "Prompt(headers=…)",
            "max_connections": "connections",
            "apikey": "api_key",
            "deadline": "deadlines",
        }.items()
    },
    **{
        f"{kind.__name__}.stream({written}=)": of_stream(kind, meant, **{written: 3})
        for kind in (Client, SyncClient)
        for written, meant in {
            "temperature": "Prompt(temperature=…)",
            "max_tokens": "max_output_tokens",
            "system": "instructions",
            "tools": "Prompt(tools=…)",
            "timeout": "Deadlines",
            "retry": "RetryPolicy",
            "modle": "model",
        }.items()
    },
    # values of a prompt
    "instructions in a list": prompt("a text", instructions=["a"]),
    "metadata of a number": prompt("'1'", metadata={"a": 1}),
    "metadata in a text": prompt("a dict of texts", metadata="a"),
    "fewer tokens than none": prompt("from 0", ValueError, max_output_tokens=-5),
    "part of a token": prompt("a whole number", max_output_tokens=1.5),
    "negative temperature": prompt("from 0", ValueError, temperature=-0.1),
    "temperature without a value": prompt("from 0", ValueError, temperature=float("nan")),
    "temperature in a text": prompt("a number", temperature="hot"),
    "endless top_p": prompt("from 0", ValueError, top_p=float("inf")),
    "seed in a text": prompt("number", seed="a"),
    "parallel_tools in a text": prompt("True or False", parallel_tools="no"),
    "user_id as a number": prompt("a text", user_id=5),
    "unknown effort": prompt("medium", ValueError, reasoning="mid"),
    "unknown structured": prompt("json_mode", ValueError, structured="json"),
    "extra in a list": prompt("a dict", extra=["a"]),
    "headers in a list": prompt("a dict of texts", headers=["a"]),
    "a tool of a provider": prompt("ToolSpec.hosted", tools=[HostedTool("web_search")]),
    "a tool by its name": prompt("ToolSpec.hosted", tools=["web_search"]),
    "a tool in a wire's fields": prompt("ToolSpec", tools=[{"type": "function"}]),
    "one tool without a list": prompt("a list of tools", tools=look),
    "two tools of one name": prompt("look", ValueError, tools=[look, ToolSpec("look")]),
    "a dict in the input": prompt("user(…)", input=[{"role": "user", "content": "hi"}]),
    "a text in the input": prompt("user(…)", input=["hi"]),
    "a part in the input": prompt("user(…)", input=[Text("hi")]),
    "a response in the input": prompt("response.items", input=[Response()]),
    # messages, outputs, histories
    "text as the content": Mistake(
        any_call(Message, "user", "hello"), TypeError, "hello", "user(…)"
    ),
    "role with a letter missing": Mistake(
        any_call(lambda: Prompt([UNTYPED("asistant", (Text("a"),))])),
        ValueError,
        "asistant",
        "assistant",
    ),
    "texts as the content": Mistake(
        any_call(lambda: Prompt([UNTYPED("user", ["hello"])])),
        TypeError,
        "content",
        "user(…)",
    ),
    "user of a number": Mistake(any_call(user, 5), TypeError, "5", "Image"),
    "user of a list": Mistake(any_call(user, ["a"]), TypeError, "['a']", "user("),
    "a text added": Mistake(any_call(History().add, "hi"), TypeError, "hi", "history.user(…)"),
    "output that is no JSON": Mistake(any_call(CALL.output, look), TypeError, "function", "JSON"),
    # clients
    **{
        f"{kind.__name__}({name}, wrong)": client(kind, meant, error, **{name: value})
        for kind in (Client, SyncClient)
        for name, value, error, meant in (
            ("retry", 3, TypeError, "RetryPolicy"),
            ("deadlines", 30, TypeError, "Deadlines"),
            ("limits", 10, TypeError, "Limits"),
            ("connections", "many", TypeError, "a whole number"),
            ("base_url", 5, TypeError, "a text"),
            ("base_url", "https://x/v1?a=b", StreamError, "query"),
            ("base_url", "https://x/v1#a", StreamError, "fragment"),
            ("base_url", "ftp://x/v1", StreamError, "https://"),
            ("base_url", "x.example/v1", StreamError, "https://"),
            ("errors", "events", ValueError, "event"),
        )
    },
    "a key as bytes": Mistake(
        any_call(Client, api_key=b"sk"), StreamError, "bytes", "api_key=key.decode()"
    ),
    "a key as bytes, sync": Mistake(
        any_call(SyncClient, api_key=b"sk"), StreamError, "bytes", "api_key=key.decode()"
    ),
    "a key as a number": Mistake(any_call(Client, api_key=5), StreamError, "int", 'api_key="…"'),
    "agent with a sync client": Mistake(
        any_call(agent, SyncClient(), "hi", model=MODEL), TypeError, "SyncClient", "`Client`"
    ),
    # requests
    **built("openai:gpt-5", "'gpt-5'", model="gpt-5"),
    **built("anthropic:claude-opus-5", "'claude-opus-5'", model="claude-opus-5"),
    **built(
        "anthropic:claude-opus-5", "'anthropic/claude-opus-5'", model="anthropic/claude-opus-5"
    ),
    **built("google:gemini-3-pro", "'gemini-3-pro'", model="gemini-3-pro"),
    **built("Unicode", "ud800", model="openai:a\ud800"),
    **built("query", "base_url", base_url="https://x?y=1"),
    **built("fragment", "'#'", base_url="https://x#y"),
    **built("https://", "URL must begin", base_url="ftp://x"),
    **built("'look'", "nope", prompt=Prompt("hi", tools=[look], tool_choice="nope")),
}


def test_mistakes_are_many() -> None:
    assert len(MISTAKES) >= 60


@each_case("name", MISTAKES)
def test_mistake_names_what_was_written_and_what_to_write(name: str) -> None:
    mistake = MISTAKES[name]
    with pytest.raises(mistake.error) as raised_:
        mistake.make()
    message = str(raised_.value)
    assert mistake.written in message
    assert mistake.meant in message
    assert type(raised_.value) is mistake.error


# --- servers that are not the one that was meant ---


async def failure_of(http: Any, base_url: str) -> str:
    """What a request to a server fails with, as text."""
    async with Client(http=http, api_key="k", base_url=base_url, retry=RetryPolicy(0)) as client_:
        with pytest.raises(StreamError) as raised_:
            await client_.respond("hi", "custom:m", wire_api="chat")
    return str(raised_.value)


@pytest.mark.parametrize("status", [200, 404])
async def test_page_for_people_names_its_url_and_base_url(status: int) -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        headers = {"content-type": "text/html; charset=utf-8"}
        return httpx.Response(status, headers=headers, text="<html>Welcome</html>")

    http = httpx.AsyncClient(transport=httpx.MockTransport(respond))
    message = await failure_of(http, "https://x.example/home")
    assert "https://x.example/home/chat/completions" in message
    assert "check base_url" in message


async def test_dead_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://user:secret@127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    message = await failure_of(None, "http://x.example/v1")
    assert "http://x.example through the proxy http://127.0.0.1:9" in message
    assert "secret" not in message


# --- what is meant is taken ---


def test_prompt_takes_functions_as_tools() -> None:
    [tool] = Prompt("hi", tools=[look]).tools
    assert tool == ToolSpec.of(look)


def test_output_takes_any_value_as_json() -> None:
    for call in (CALL, CustomToolCall("c", "look", "")):
        assert call.output({"a": 1}).output == '{"a":1}'
        assert call.output([1, 2]).output == "[1,2]"
        assert call.output([Text("a")]).output == (Text("a"),)
        assert call.output("").output == ""


def test_user_takes_texts_and_parts_in_any_order() -> None:
    image = Image(url="https://x/a.png")
    assert user(image, "what?").content == (image, Text("what?"))
    assert History().user(image, "a", "b")[0].content == (  # type: ignore[union-attr]
        image,
        Text("a"),
        Text("b"),
    )
    assert user().content == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"max_output_tokens": 0},
        {"max_output_tokens": -1},  # Ollama: no limit
        {"temperature": 0},
        {"top_k": -1},
        {"instructions": ""},
        {"metadata": {}},
        {"n": 0},
        {"seed": -1},
        {"reasoning": -1},  # Gemini: the model decides
        {"tools": [ToolSpec("a", native={"type": "x"}), ToolSpec("a")]},
    ],
)
def test_prompt_takes_what_a_provider_takes(fields: dict[str, Any]) -> None:
    assert streamlib.build(Prompt("hi", **fields), "ollama:m").body


def test_decoded_requests_are_not_checked() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_completion_tokens": -5,
    }
    decoded = parse_request("chat", msgspec.json.encode(body))
    assert decoded.max_output_tokens == -5
    assert streamlib.build(decoded, MODEL, wire_api="chat").body
