"""`streamlib "question"` and `streamlib chat`: one response, or a conversation in the terminal.

Without a model the loopback provider responds, so that nothing needs a key.
"""

from __future__ import annotations

import argparse
from typing import Final

from streamlib.cli.arguments import CommandError
from streamlib.cli.conversation import Conversation
from streamlib.cli.exit_codes import EXIT_CODES, USAGE
from streamlib.cli.keyboard import has_pipe, is_conversation, read_piped
from streamlib.cli.model_options import MODEL_VARIABLE
from streamlib.request.prompt import EFFORTS
from streamlib_parsers import WIRE_APIS

DESCRIPTION: Final = f"""\
Streams one response. Without TEXT, piped input is the question; without
that, a conversation begins. Without --model and {MODEL_VARIABLE}, the
loopback provider responds, which needs no key."""

EXAMPLES: Final = f"""examples:
  # offline: the loopback provider repeats its input
  streamlib chat "Name three rivers"
  # a conversation; needs ANTHROPIC_API_KEY
  streamlib chat --model anthropic:claude-opus-5
  # the piped text is sent before the question
  git diff | streamlib chat -s "You review code" "What can break?"
  # continues the conversation of talk.json, and saves every turn to it
  streamlib chat --model openai:gpt-5 --history talk.json
  streamlib chat "What is this?" -a photo.jpg -m google:gemini-3-pro
  streamlib chat "A script that lists big files" -o temperature 0 -x
  # JSON with these fields; exit code 3 if the response is something else
  streamlib chat "Invent a dog" --schema "name, age int: in years"
  # shows the calls and prompts you for their outputs; it runs nothing
  streamlib chat "Weather in Rome?" --tools tools.json
  # then: streamlib inspect response.jsonl
  streamlib chat Hello --record response.jsonl
  # a server of your own
  streamlib chat Hi --model custom:M --wire-api chat --base-url http://host/v1

tools.json:
  [{{"name": "get_weather", "description": "…", "schema":
    {{"type": "object", "properties": {{"city": {{"type": "string"}}}}}}}}]

{EXIT_CODES}"""


def add(command: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    command.add_argument(
        "text", nargs="*", metavar="TEXT", help="the question; without it, a conversation"
    )
    _add_request_options(command)
    _add_output_options(command)


def _add_request_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-m",
        "--model",
        metavar="PROVIDER:MODEL",
        help=f"for example anthropic:claude-opus-5 (default: {MODEL_VARIABLE})",
    )
    command.add_argument("-s", "--system", metavar="TEXT", help="instructions for the model")
    command.add_argument(
        "-a",
        "--attach",
        metavar="FILE|URL|-",
        action="append",
        default=[],
        help="an image, document, sound or text, sent with the first message; may be repeated",
    )
    command.add_argument(
        "--image",
        metavar="FILE",
        action="append",
        default=[],
        help="as --attach, but only an image is accepted",
    )
    command.add_argument(
        "-o",
        "--option",
        nargs=2,
        metavar=("KEY", "VALUE"),
        action="append",
        default=[],
        help="a setting of the request, such as temperature 0.2; may be repeated",
    )
    command.add_argument(
        "--reasoning",
        choices=EFFORTS,
        metavar="EFFORT",
        help=f"reasoning effort: {', '.join(EFFORTS)}",
    )
    command.add_argument(
        "--schema",
        metavar="FIELDS|FILE|JSON",
        help="the fields of a JSON response: 'name, age int: in years', or a JSON Schema",
    )
    command.add_argument(
        "--tools",
        metavar="FILE",
        help="a JSON list of tools to offer; you type the outputs of their calls",
    )
    command.add_argument(
        "--history", metavar="FILE", help="a conversation to continue, saved after each turn"
    )
    command.add_argument(
        "--wire-api",
        choices=WIRE_APIS,
        metavar="WIRE",
        help=f"the wire to use instead of the provider's default: {', '.join(WIRE_APIS)}",
    )
    command.add_argument("--base-url", metavar="URL", help="another server for the same provider")


def _add_output_options(command: argparse.ArgumentParser) -> None:
    shape = command.add_mutually_exclusive_group()
    shape.add_argument(
        "-x", "--extract", action="store_true", help="write only the first fenced code block"
    )
    shape.add_argument("--json", action="store_true", help="write the response as one JSON object")
    shape.add_argument(
        "--raw", action="store_true", help="write the text as it is, also on a terminal"
    )
    command.add_argument(
        "--record",
        metavar="FILE",
        help="append every response to this file, with its chunks and times; keys are masked",
    )


def run(arguments: argparse.Namespace) -> int:
    """Streams one response, or a conversation until the end of the input."""
    conversation = Conversation(arguments)
    question = _question(arguments)
    if question is None:
        return conversation.talk()
    return conversation.ask(question)


def _question(arguments: argparse.Namespace) -> str | None:
    """The piped input and the text of the command; None: questions are typed, line by line.

    Raises:
        CommandError: there is no text and no input to read; exit code 2.
    """
    typed = " ".join(arguments.text)
    # With the attachment `-` the piped input is the attachment.
    is_pipe_read = "-" in arguments.attach
    if typed:
        # The outputs of calls are read from the pipe, so it is not part of the question.
        if is_pipe_read or arguments.tools or not has_pipe():
            return typed
        piped = read_piped().rstrip("\n")
        if not piped:
            return typed
        return f"{piped}\n\n{typed}"
    if is_conversation():
        return None
    piped = ""
    if not is_pipe_read:
        piped = read_piped()
    if not piped.strip() and not arguments.attach:
        raise CommandError(
            "no question: pass it as words or through a pipe (streamlib --help shows examples)",
            USAGE,
        )
    return piped
