// Reads UI streams the way front ends do, with their own code, and says what they made of them.
//
//   node read.mjs HOME          HOME: the folder whose node_modules holds the readers
//   stdin   one JSON object a line: {reader: "vercel6" | "vercel7" | "messages6" | "messages7" | "agui", body: base64, chunk: bytes a read}
//   stdout  one JSON object a line: {refused: [why it was not read to its end], errors: [what the stream itself said], …}
//
// A reader's warning is a refusal too: that is how AG-UI's client says that it dropped something.

import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const home = process.argv[2];
const load = path => import(pathToFileURL(join(home, 'node_modules', path)).href);

let warnings = [];
console.warn = (...words) => warnings.push(words.map(String).join(' '));
console.error = console.warn;

function response(body, size) {
  const pieces = new ReadableStream({
    start(controller) {
      for (let at = 0; at < body.length; at += size) controller.enqueue(new Uint8Array(body.subarray(at, at + size)));
      controller.close();
    },
  });
  return new Response(pieces, { headers: { 'content-type': 'text/event-stream' } });
}

// useChat's own state, without a screen: what React's hook keeps in refs.
class State {
  status = 'ready';
  error = undefined;
  messages = [];
  pushMessage = message => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (index, message) => { this.messages = this.messages.map((old, n) => (n === index ? message : old)); };
  snapshot = value => value;
}

async function vercel(ai, body, size) {
  const said = [];
  const transport = () => new ai.DefaultChatTransport({ api: 'http://127.0.0.1/chat', fetch: async () => response(body, size) });
  const asked = { trigger: 'submit-message', chatId: 'chat', messages: [], abortSignal: undefined };
  const noted = new TransformStream({ transform: (part, to) => { if (part.type === 'error') said.push(part.errorText); to.enqueue(part); } });
  const stream = (await transport().sendMessages(asked)).pipeThrough(noted);
  const raised = [];
  let message = null;
  for await (const state of ai.readUIMessageStream({ stream, onError: error => raised.push(error.message) })) message = state;
  const refused = raised.filter(error => !said.includes(error));
  const messages = message === null ? [] : [JSON.parse(JSON.stringify(message))];
  if (messages.length > 0) {
    const valid = await ai.safeValidateUIMessages({ messages });
    if (!valid.success) refused.push(`invalid message: ${valid.error.message}`);
  }
  return { refused, errors: said, messages, chat: await chat(ai, transport()) };
}

// The same once more through the machine under useChat, which stops at the first error.
async function chat(ai, transport) {
  let finish = null;
  const data = [], errors = [];
  const onData = part => { data.push(part.type); if (part.type === 'data-error') errors.push(part.data); };
  class Chat extends ai.AbstractChat {}
  const chat = new Chat({ id: 'chat', transport, state: new State(), onData, onFinish: end => { finish = end; } });
  await chat.sendMessage({ text: 'hi' });
  const { isAbort = false, isError = false, isDisconnect = false, finishReason = null } = finish ?? {};
  return { status: chat.status, error: chat.error?.message ?? null, data, errors, isAbort, isError, isDisconnect, finishReason };
}

async function agui(client, body, size) {
  const agent = new client.HttpAgent({ url: 'http://127.0.0.1/agent', threadId: 't', fetch: async () => response(body, size) });
  const errors = [], custom = [];
  let outcome = null, pending = null, interrupts = [];
  const data = [];
  const watch = {
    onRunErrorEvent: ({ event }) => { errors.push(`${event.code}: ${event.message}`); },
    onRunFinishedEvent: end => { outcome = end.outcome; pending = end.pendingToolCallIds ?? []; interrupts = end.interrupts ?? []; },
    onCustomEvent: ({ event }) => { custom.push(event.name); if (event.name === 'error') data.push(event.value); },
  };
  const refused = [];
  try {
    await agent.runAgent({ runId: 'r' }, watch);
  } catch (error) {
    refused.push(error.message);
  }
  return { refused, errors, messages: JSON.parse(JSON.stringify(agent.messages)), outcome, pending, interrupts, custom, data };
}

// Server-sent events as eventsource-parser reads them; it wants text, which is decoded as browsers decode it.
function sse({ createParser }, body, size) {
  const events = [];
  const parser = createParser({ onEvent: ({ event, data }) => { events.push([event || 'message', data]); } });
  const decoder = new TextDecoder();
  for (let at = 0; at < body.length; at += size) parser.feed(decoder.decode(body.subarray(at, at + size), { stream: true }));
  parser.feed(decoder.decode());
  return { refused: [], events };
}

// Whole messages, as a server keeps them: whether the SDK takes them, and how many it makes for a model.
async function validated(ai, body) {
  const messages = JSON.parse(body.toString());
  const valid = await ai.safeValidateUIMessages({ messages });
  if (!valid.success) return { refused: [valid.error.message] };
  const forModel = await ai.convertToModelMessages(valid.data);
  return { refused: [], messages: JSON.parse(JSON.stringify(forModel)) };
}

const [ai6, ai7, client, eventsource] = await Promise.all(
  ['ai/dist/index.mjs', 'ai7/dist/index.js', '@ag-ui/client/dist/index.mjs', 'eventsource-parser/dist/index.js'].map(load),
);
const readers = {
  vercel6: (body, size) => vercel(ai6, body, size),
  vercel7: (body, size) => vercel(ai7, body, size),
  messages6: body => validated(ai6, body),
  messages7: body => validated(ai7, body),
  agui: (body, size) => agui(client, body, size),
  sse: (body, size) => sse(eventsource, body, size),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { reader, body, chunk } = JSON.parse(line);
  warnings = [];
  let verdict;
  try {
    verdict = await readers[reader](Buffer.from(body, 'base64'), chunk ?? 4096);
  } catch (error) {
    verdict = { refused: [`${error.name}: ${error.message}`], errors: [], messages: [] };
  }
  verdict.refused.push(...warnings);
  process.stdout.write(`${JSON.stringify(verdict)}\n`);
}
