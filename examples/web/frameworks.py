"""What the pages of React (`useChat`) and of AG-UI's client talk to.

Both send the whole conversation with each request, so nothing is stored here. The tool has to be
approved: the run ends at its call, and goes on in the next request, with what the user decided.
"""

from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from streamlib import (
    AgentRun,
    CallOutput,
    Client,
    FunctionCall,
    FunctionCallOutput,
    RunEvent,
    StreamError,
    ToolSpec,
    agent,
)
from streamlib import Response as ModelResponse
from streamlib.web import StreamResponse, UIRequest, error_response, parse_ui_request


def book_trip(city: str = "Lisbon", days: int = 3) -> str:
    """Book a trip."""
    return f"Booked: {days} days in {city}."


TOOL = ToolSpec.of(book_trip)
"""Offered without its function, so that nothing runs it before somebody has agreed."""


class ContinuedRun:
    """A run that begins with the outputs of the calls that the user has just approved."""

    def __init__(self, outputs: list[CallOutput], run: AgentRun) -> None:
        self.outputs, self.run = outputs, run

    @property
    def response(self) -> ModelResponse:
        """The newest response."""
        return self.run.response

    async def __aenter__(self) -> AsyncIterator[RunEvent]:
        await self.run.__aenter__()
        return self.events()

    async def __aexit__(self, *error: object) -> None:
        await self.run.__aexit__(*error)

    async def events(self) -> AsyncIterator[RunEvent]:
        """Yield the outputs, then what the model makes of them."""
        for output in self.outputs:
            yield output
        async for event in self.run:
            yield event


def approved_outputs(asked: UIRequest) -> list[CallOutput]:
    """Run the calls that the user has approved. Here the page's word is enough for it."""
    approved = {approval.call_id for approval in asked.approvals if approval.approved}
    answered = {item.call_id for item in asked.history if isinstance(item, FunctionCallOutput)}
    outputs: list[CallOutput] = []
    for item in asked.history:
        if isinstance(item, FunctionCall) and item.call_id in approved - answered:
            outputs.append(item.output(book_trip(**item.parsed())))
    return outputs


def framework_routes(client: Client, model: str) -> list[Route]:
    """The endpoints of both pages."""

    async def chat(request: Request) -> Response:
        return await respond("vercel", request)

    async def agui(request: Request) -> Response:
        return await respond("agui", request)

    async def respond(protocol: Any, request: Request) -> Response:
        if not request.headers.get("content-type", "").startswith("application/json"):
            return Response("send JSON", 415)
        try:
            asked = parse_ui_request(protocol, await request.body(), tools=[TOOL])
            outputs = approved_outputs(asked)
            run = agent(client, [*asked.history, *outputs], [TOOL], model)
        except StreamError as error:
            return error_response(error)
        # Both protocols know how to ask the user about a call of these tools.
        encode = asked.encoder(page_tools=(), approval_tools=[TOOL.name])
        return StreamResponse(ContinuedRun(outputs, run), encode)

    return [
        Route("/api/chat", chat, methods=["POST"]),
        Route("/api/agui", agui, methods=["POST"]),
    ]
