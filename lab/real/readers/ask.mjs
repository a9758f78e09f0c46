// Asks as front ends do, with their own code, and says what they sent.
//
//   node ask.mjs HOME           HOME: the folder whose node_modules holds the clients
//   stdin   one JSON object a line: {client: "vercel6" | "vercel7" | "agui", streams: [base64], actions: [...], messages, tools}
//           streams: the responses to the first requests, in order; a further request gets an empty one
//           actions: what the user does after each response: {do: "send", text, files} | {do: "output", id, tool, output, error} |
//                    {do: "approve", id, approved, reason} | {do: "regenerate"}
//   stdout  one JSON object a line: {bodies: [what each request had as its body], errors: [...]}

import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const home = process.argv[2];
const load = path => import(pathToFileURL(join(home, 'node_modules', path)).href);
console.warn = console.error = () => {};

class State {
  status = 'ready';
  error = undefined;
  constructor(messages) { this.messages = messages; }
  pushMessage = message => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (index, message) => { this.messages = this.messages.map((old, n) => (n === index ? message : old)); };
  snapshot = value => structuredClone(value);
}

function answering(streams, end, bodies) {
  return async (_url, { body }) => {
    bodies.push(body);
    const stream = streams.length > 0 ? Buffer.from(streams.shift(), 'base64') : end;
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
  };
}

async function vercel(ai, { streams, actions, messages = [] }) {
  const bodies = [], errors = [];
  const fetch = answering([...streams], 'data: {"type":"start"}\n\ndata: {"type":"finish"}\n\ndata: [DONE]\n\n', bodies);
  class Chat extends ai.AbstractChat {}
  const chat = new Chat({
    id: 'chat-1',
    transport: new ai.DefaultChatTransport({ api: 'http://127.0.0.1/chat', fetch, body: { own: 1 } }),
    state: new State(messages),
    onError: error => errors.push(error.message),
  });
  for (const action of actions) {
    if (action.do === 'send') await chat.sendMessage({ text: action.text, files: action.files });
    else if (action.do === 'regenerate') await chat.regenerate();
    else if (action.do === 'approve') await chat.addToolApprovalResponse({ id: action.id, approved: action.approved, reason: action.reason });
    else if (action.error) await chat.addToolOutput({ state: 'output-error', tool: action.tool, toolCallId: action.id, errorText: action.error });
    else await chat.addToolOutput({ tool: action.tool, toolCallId: action.id, output: action.output });
    // What the user did to a message goes with the next request.
    if (action.do === 'output' || action.do === 'approve') await chat.sendMessage();
  }
  return { bodies, errors };
}

async function agui(client, { streams, actions, messages = [], tools = [] }) {
  const bodies = [], errors = [];
  const end = 'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\ndata: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}\n\n';
  const agent = new client.HttpAgent({
    url: 'http://127.0.0.1/agent', threadId: 't', fetch: answering([...streams], end, bodies), initialMessages: messages, initialState: { step: 1 },
  });
  let n = 0;
  for (const action of actions) {
    n += 1;
    if (action.do === 'send') agent.addMessage({ id: `user-${n}`, role: 'user', content: action.content ?? action.text });
    else agent.addMessage({ id: `tool-${n}`, role: 'tool', toolCallId: action.id, content: action.output ?? '', ...(action.error ? { error: action.error } : {}) });
    try {
      await agent.runAgent({ runId: `run-${n}`, tools, context: [{ description: 'd', value: 'v' }], forwardedProps: { own: 1 }, resume: action.resume });
    } catch (error) {
      errors.push(error.message);
    }
  }
  return { bodies, errors };
}

const [ai6, ai7, client] = await Promise.all(['ai/dist/index.mjs', 'ai7/dist/index.js', '@ag-ui/client/dist/index.mjs'].map(load));
const clients = { vercel6: asked => vercel(ai6, asked), vercel7: asked => vercel(ai7, asked), agui: asked => agui(client, asked) };

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  let told;
  try {
    told = await clients[asked.client](asked);
  } catch (error) {
    told = { bodies: [], errors: [`${error.name}: ${error.message}`] };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
