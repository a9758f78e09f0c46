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
    Audio,
    CacheOptions,
    Client,
    Deadlines,
    Document,
    FunctionCall,
    FunctionCallOutput,
    History,
    Image,
    Message,
    Prompt,
    Reasoning,
    ReasoningOptions,
    Response,
    RetryPolicy,
    SyncClient,
    Text,
    ToolSpec,
    accumulate,
    encode_all,
    encode_body,
    register,
    user,
)
from streamlib.pipeline import (
    coalesce,
    fallback,
    guard,
    limit,
    map_async,
    merge,
    race,
    smooth,
    tee,
    timeout,
    window,
    words,
)
from streamlib.tools import agent
from streamlib.wires.decoders import parse_request
from streamlib_parsers.hosted_tools import HostedTool
from streamlib_parsers.items import CustomToolCall
from streamlib_parsers.stream_error import StreamError
from tests.support.cases import each_case

MODEL: Final = "openai:gpt-5"
DATA: Final = b"\x89PNG\r\n\x1a\n"
UNTYPED: Final[Any] = Message
"""The class, for values that its types forbid."""


def untyped(value: Any) -> Any:
    """A value, for a field that its types forbid."""
    return value


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


def prompt_with(written: str, meant: str, error: Any = TypeError, **fields: Any) -> Mistake:
    """A wrong name or value inside a field of a prompt."""
    return Mistake(lambda: Prompt(**{"input": "hi", **fields}), error, written, meant)


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


def any_call(
    function: Callable[..., object], /, *values: Any, **named: Any
) -> Callable[[], object]:
    """A call that its types forbid."""
    return lambda: function(*values, **named)


def awaited(make: Callable[[], Any]) -> Callable[[], object]:
    """A value that is awaited though it cannot be."""

    def run() -> None:
        make().__await__()

    return run


def stream_of(kind: Any) -> Any:
    """A stream, which sends nothing before it is entered."""
    return kind(api_key="k").stream("hi", MODEL)


SYNC: Final = "`with …` and `for …`"

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
    "temperature in percent": prompt("from 0 to 10", ValueError, temperature=30),
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
    # words with letters in the wrong place, and those of other libraries
    "reasoning misspelt": prompt("'high'", ValueError, reasoning="hgih"),
    "reasoning of OpenAI": prompt("'off'", ValueError, reasoning="none"),
    "verbosity misspelt": prompt("'high'", ValueError, verbosity="hgih"),
    "thinking_mismatch cut": prompt("drop_block", ValueError, thinking_mismatch="drop"),
    "extra_wire misspelt": prompt("'chat'", ValueError, extra_wire="chta"),
    "structured misspelt": prompt("'tool'", ValueError, structured="tools"),
    "a lifetime as cache": prompt("CacheOptions(ttl='1h')", ValueError, cache="1h"),
    "cache switched on": prompt('"auto"', cache=True),
    "cache of Anthropic": prompt("CacheOptions", cache={"type": "ephemeral"}),
    "cache for seconds": prompt_with("ttl", "1h", cache=CacheOptions(untyped(3600))),
    "cache marked by True": prompt_with(
        "instructions", "CacheMark()", cache=CacheOptions(instructions=untyped(True))
    ),
    "reasoning switched on": prompt("medium", reasoning=True),
    "reasoning in an object": prompt("ReasoningOptions", reasoning={"effort": "high"}),
    "reasoning of half": prompt("medium", reasoning=0.5),
    "budget below zero": prompt("from 0", ValueError, reasoning=-5),
    "effort misspelt": prompt_with(
        "hihg", "'high'", ValueError, reasoning=ReasoningOptions(untyped("hihg"))
    ),
    "budget in a text": prompt_with(
        "budget", "a whole number", reasoning=ReasoningOptions(budget=untyped("9"))
    ),
    "share in percent": prompt("from 0 to 1", ValueError, top_p=90),
    "penalty without a value": prompt("finite", ValueError, presence_penalty=float("nan")),
    "stop of a number": prompt("a text or a list of texts", stop=5),
    "stop of None": prompt("a text or a list of texts", stop=None),
    "tools of a number": prompt("a list of tools", tools=5),
    "tools by name": prompt("a list of tools", tools={"look": look}),
    "a set as the input": prompt("a set has no order", input={user("hi")}),
    "schema of a tool as text": prompt_with(
        '"type"', "json.loads", tools=[ToolSpec("f", schema=untyped('{"type": "object"}'))]
    ),
    "schema of a tool as a class": prompt_with(
        "dict", "ToolSpec.of", tools=[ToolSpec("f", schema=untyped(dict))]
    ),
    "schema in the description": prompt_with(
        "description", "schema={…}", tools=[ToolSpec("f", untyped({"type": "object"}))]
    ),
    "a function as a tool's name": prompt_with(
        "look", "ToolSpec.of", tools=[ToolSpec(untyped(look))]
    ),
    "a tool without a name": prompt_with("''", "a text", tools=[ToolSpec("")]),
    "strict in a text": prompt_with(
        "'yes'", "True or False", tools=[ToolSpec("f", strict=untyped("yes"))]
    ),
    "an option of another library": Mistake(
        any_call(ToolSpec, "f", parameters={}), TypeError, "parameters", "schema=…"
    ),
    "an option of the budget": Mistake(
        any_call(ReasoningOptions, budget_tokens=9), TypeError, "budget_tokens", "budget=…"
    ),
    "an option of the cache": Mistake(
        any_call(CacheOptions, type="ephemeral"), TypeError, "type", "ttl=…"
    ),
    "an option of retries": Mistake(
        any_call(RetryPolicy, max_retries=3), TypeError, "max_retries", "retries=…"
    ),
    "an option of deadlines": Mistake(
        any_call(Deadlines, timeout=3), TypeError, "timeout", "total=…"
    ),
    "an option with letters swapped": Mistake(
        any_call(Deadlines, conenct=3), TypeError, "conenct", "connect=…"
    ),
    "retries in a text": Mistake(any_call(RetryPolicy, "3"), ValueError, "'3'", "a number"),
    "fewer retries than none": Mistake(any_call(RetryPolicy, -1), ValueError, "-1", "zero or more"),
    "a hosted tool misspelt": Mistake(
        any_call(ToolSpec.hosted, "web_serach"), ValueError, "web_serach", "'web_search'"
    ),
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
    "no content": Mistake(any_call(Message, "user", None), TypeError, "None", '""'),
    "role of LangChain": Mistake(
        any_call(lambda: Prompt([UNTYPED("human", (Text("a"),))])), ValueError, "human", "'user'"
    ),
    "role of an output": Mistake(
        any_call(lambda: Prompt([UNTYPED("tool", (Text("a"),))])),
        ValueError,
        "tool",
        "call.output(…)",
    ),
    "a number as a text": Mistake(
        any_call(lambda: Prompt([user(Text(untyped(5)))])), TypeError, "Text(5)", "a str"
    ),
    "messages of another library": prompt(
        "streamlib.history.load_transcript", input=[{"role": "user", "content": "hi"}]
    ),
    "arguments in a dict": Mistake(
        any_call(lambda: Prompt([FunctionCall("c", "f", untyped({"a": 1}))])),
        TypeError,
        "arguments",
        "json.dumps(…)",
    ),
    "output in a dict": Mistake(
        any_call(lambda: Prompt([FunctionCallOutput("c", untyped({"a": 1}))])),
        TypeError,
        "output",
        "call.output(…)",
    ),
    "output without a call": Mistake(
        any_call(lambda: Prompt([FunctionCallOutput(untyped(None), "x")])),
        TypeError,
        "call_id",
        "call.output(…)",
    ),
    "a stream accumulated": Mistake(
        any_call(lambda: accumulate(untyped(Client(api_key="k").stream("hi", MODEL)))),
        TypeError,
        "ResponseStream",
        "stream.response",
    ),
    "events as a body": Mistake(
        any_call(encode_body, "chat", []), TypeError, "list", "accumulate(events)"
    ),
    "a response as events": Mistake(
        any_call(encode_all, "chat", Response()), TypeError, "Response", "encode_body"
    ),
    "a name registered": Mistake(any_call(register, "openai"), TypeError, "openai", "Provider(…)"),
    "a history of None": Mistake(any_call(History, None), TypeError, "None", "streamlib.user(…)"),
    "a history of one item": Mistake(any_call(History, user("q")), TypeError, "q", "`[…]` around"),
    "a history extended by a number": Mistake(
        any_call(History().extend, 5), TypeError, "not 5", "streamlib.user(…)"
    ),
    "a history extended by one item": Mistake(
        any_call(History().extend, user("q")), TypeError, "q", "history.append(…)"
    ),
    "a history extended by a response": Mistake(
        any_call(History().extend, Response()), TypeError, "Response", "*response.items"
    ),
    "a text put in place of an item": Mistake(
        any_call(History([user("q")]).__setitem__, 0, "x"), TypeError, "'x'", "user(…)"
    ),
    "texts put in place of items": Mistake(
        any_call(History([user("q")]).__setitem__, slice(0, 1), ["x"]), TypeError, "'x'", "user(…)"
    ),
    "a history and a list of texts": Mistake(
        any_call(lambda: History() + untyped(["x"])), TypeError, "'x'", "user(…)"
    ),
    "a history and a number": Mistake(
        any_call(lambda: History() + untyped(5)), TypeError, "not 5", "streamlib.user(…)"
    ),
    "a text added": Mistake(any_call(History().add, "hi"), TypeError, "hi", "history.user(…)"),
    "output that is no JSON": Mistake(any_call(CALL.output, look), TypeError, "function", "JSON"),
    "reasoning of a number": Mistake(
        any_call(lambda: Prompt([Reasoning(untyped(5))])), TypeError, "content", "a text"
    ),
    "summary in a text": Mistake(
        any_call(lambda: Prompt([Reasoning(summary=untyped("a"))])),
        TypeError,
        "summary",
        "a list of texts",
    ),
    **{
        f"{kind.__name__}({name}=5)": Mistake(
            any_call(kind, **{"data": DATA, name: 5}), TypeError, name, "a text"
        )
        for kind in (Image, Document, Audio)
        for name in ("media_type", "name")
    },
    "an address of a number": Mistake(any_call(Image, url=5), TypeError, "url", "a text"),
    "a history of dicts": Mistake(
        any_call(History, [{"role": "user", "content": "hi"}]),
        TypeError,
        "'role'",
        "streamlib.history.load_transcript",
    ),
    "a text as a history": Mistake(any_call(History, "hi"), TypeError, "'hi'", "user(…)"),
    "a text appended": Mistake(any_call(History().append, "x"), TypeError, "'x'", "user(…)"),
    "a text inserted": Mistake(any_call(History().insert, 0, "x"), TypeError, "'x'", "user(…)"),
    "a response as a list": Mistake(
        any_call(History().extend, Response()), TypeError, "Response", "response.items"
    ),
    "texts added to a history": Mistake(
        any_call(History().__iadd__, ["x"]), TypeError, "'x'", "user(…)"
    ),
    # streams that are read in another way
    "await of a stream": Mistake(
        awaited(lambda: stream_of(Client)), TypeError, "`await`", "`await client.respond(…)`"
    ),
    "for of a stream": Mistake(
        any_call(lambda: list(stream_of(Client))), TypeError, "`for`", "`async for"
    ),
    "with of a stream": Mistake(
        any_call(lambda: stream_of(Client).__enter__()), TypeError, "`with`", "`async with"
    ),
    "with of a client": Mistake(
        any_call(lambda: untyped(Client()).__enter__()), TypeError, "`with`", "`async with"
    ),
    "for of a pipeline": Mistake(
        any_call(lambda: list(stream_of(Client).pipe(words()))),
        TypeError,
        "`for`",
        "`async for",
    ),
    "await of a sync stream": Mistake(
        awaited(lambda: stream_of(SyncClient)), TypeError, "`await`", SYNC
    ),
    "async with of a sync client": Mistake(
        any_call(lambda: untyped(SyncClient()).__aenter__()), TypeError, "`async with`", SYNC
    ),
    # stages of a pipeline
    **{
        f"{stage.__name__}({name}={value!r})": Mistake(
            any_call(stage, **{**further, name: value}), error, name, meant
        )
        for stage, name, value, error, meant, further in (
            (limit, "characters", 2.5, TypeError, "a whole number from 1", {}),
            (limit, "characters", True, TypeError, "a whole number from 1", {}),
            (limit, "characters", 0, ValueError, "a whole number from 1", {}),
            (limit, "seconds", "3", TypeError, "more than 0 seconds", {}),
            (window, "events", "3", TypeError, "a whole number from 1", {}),
            (window, "seconds", float("nan"), ValueError, "more than 0 seconds", {}),
            (words, "longest", "3", TypeError, "a whole number from 1", {}),
            (coalesce, "interval", None, TypeError, "0 or more seconds", {}),
            (smooth, "lag", "slow", TypeError, "0 or more seconds", {}),
            (timeout, "gap", "30", TypeError, "more than 0 seconds", {}),
            (tee, "count", 2.0, TypeError, "a whole number from 1", {"source": None}),
            (merge, "ahead", "1", TypeError, "a whole number from 1", {"streams": {}}),
            (map_async, "concurrency", 0.5, TypeError, "a whole number", {"function": look}),
            (guard, "ahead", 1.5, TypeError, "a whole number from 1", {"check": look}),
            (race, "after", "1", TypeError, "0 or more seconds", {"starts": [look]}),
            (fallback, "deadline", "1", TypeError, "more than 0", {"starts": [look]}),
        )
    },
    # clients
    **{
        f"{kind.__name__} with a key alone": Mistake(
            any_call(kind, "sk-secret"), TypeError, kind.__name__, "api_key=…"
        )
        for kind in (Client, SyncClient)
    },
    **{
        f"{kind.__name__}.stream({name}='no')": Mistake(
            any_call(
                lambda kind, name: kind(api_key="k").stream("hi", MODEL, **{name: "no"}), kind, name
            ),
            TypeError,
            name,
            "True or False",
        )
        for kind in (Client, SyncClient)
        for name in ("strict", "strict_origin", "resume")
    },
    "build(strict='no')": Mistake(
        any_call(streamlib.build, "hi", MODEL, strict="no"), TypeError, "strict", "True or False"
    ),
    **{
        f"{kind.__name__}({name}={value!r:.30})": client(kind, meant, error, **{name: value})
        for kind in (Client, SyncClient)
        for name, value, error, meant in (
            ("api_key", {"opnai": "k"}, ValueError, "'openai'"),
            ("api_key", {"Anthropic": "k"}, ValueError, "'anthropic'"),
            ("resume", "yes", TypeError, "True or False"),
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
            ("errors", "rasie", ValueError, "'raise'"),
            ("wire_api", "chta", ValueError, "'chat'"),
            ("wire_api", "chat_completions", ValueError, "'chat'"),
            ("http", "requests", ValueError, "httpx"),
            ("http", 5, TypeError, "Transport"),
            ("http", httpx.AsyncClient, TypeError, "httpx.AsyncClient"),
            ("http", httpx.Client(), TypeError, "httpx.AsyncClient"),
            ("connections", 0, ValueError, "from 1"),
            ("providers", "openai", TypeError, "Provider(…)"),
            ("providers", ["openai"], TypeError, "Provider(…)"),
            ("models", ["a"], TypeError, "Traits(…)"),
            ("models", {"a": {"x": 1}}, TypeError, "Traits(…)"),
            ("dialects", "think", TypeError, "a list"),
            ("on_event", 5, TypeError, "a function"),
        )
    },
    "a dialect of models misspelt": Mistake(
        any_call(Client, dialects=[("qwen", ("thnk",))]), ValueError, "thnk", "think"
    ),
    "a dialect misspelt": Mistake(
        any_call(lambda: Client(api_key="k").stream("hi", MODEL, dialects=["thnk"])),
        ValueError,
        "thnk",
        "think",
    ),
    "a dialect without a list": Mistake(
        any_call(lambda: Client(api_key="k").stream("hi", MODEL, dialects="think")),
        TypeError,
        "think",
        "['think']",
    ),
    "a model as a number": Mistake(
        any_call(streamlib.build, "hi", 5), TypeError, "5", "provider:model"
    ),
    "a setting of the prompt": Mistake(
        any_call(streamlib.build, "hi", MODEL, temperature=1),
        TypeError,
        "temperature",
        "Prompt(temperature=…)",
    ),
    "a key as bytes": Mistake(
        any_call(Client, api_key=b"sk"), StreamError, "bytes", "api_key=key.decode()"
    ),
    "a key as bytes, sync": Mistake(
        any_call(SyncClient, api_key=b"sk"), StreamError, "bytes", "api_key=key.decode()"
    ),
    "a key as a number": Mistake(any_call(Client, api_key=5), StreamError, "int", 'api_key="…"'),
    "agent without a client": Mistake(
        any_call(agent, "hi", "hi", model=MODEL), TypeError, "a str", "`Client`"
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
    **built("'required'", "requierd", prompt=Prompt("hi", tools=[look], tool_choice="requierd")),
    **built("'required'", "any", prompt=Prompt("hi", tools=[look], tool_choice="any")),
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


def test_key_without_a_name_is_not_repeated() -> None:
    for kind in (Client, SyncClient):
        with pytest.raises(TypeError) as raised_:
            untyped(kind)("sk-secret")
        # the last frames are the library's
        frames = [frame.frame.f_locals for frame in raised_.traceback[1:]]
        assert "sk-secret" not in f"{raised_.value} {frames}"


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


@pytest.mark.parametrize("name", ["openai-eu", "openai2", "my-claude", "acme", "openai", "custom"])
def test_keys_of_own_providers_are_taken(name: str) -> None:
    """A stream may have a provider of its own, whose name is similar to another."""
    assert Client(api_key={name: "k"})


async def test_stream_of_a_start_is_not_awaited() -> None:
    async with Client(api_key="k") as client_:
        started = fallback([lambda: client_.stream("hi", MODEL, base_url="http://127.0.0.1:9")])
        with pytest.raises(StreamError, match="connection"):
            async with started as events:
                _ = [event async for event in events]


@pytest.mark.parametrize("temperature", [0, 2, 5.0])
def test_temperatures_of_local_models_are_taken(temperature: float) -> None:
    assert Prompt("hi", temperature=temperature)


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


@each_case(
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
