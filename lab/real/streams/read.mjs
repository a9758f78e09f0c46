// Reads logs over HTTP the way pages do, with their own code.
//
//   node read.mjs HOME          HOME: the folder whose node_modules holds the clients
//   stdin   one JSON object a line:
//           {do: "stream", url, live, offset}: Durable Streams' own client, to the end of the stream
//           {do: "resume", sdk: "ai" | "ai7", api, id, messages}: useChat's machine, as after a reload
//   stdout  one JSON object a line: {items, closed} | {messages, status, error}, or {failed}

import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const home = process.argv[2];
const load = path => import(pathToFileURL(join(home, 'node_modules', path)).href);
const [client, ai, ai7] = await Promise.all(['@durable-streams/client/dist/index.js', 'ai/dist/index.mjs', 'ai7/dist/index.js'].map(load));

class State {
  status = 'ready';
  error = undefined;
  constructor(messages) { this.messages = messages; }
  pushMessage = message => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (index, message) => { this.messages = this.messages.map((old, n) => (n === index ? message : old)); };
  snapshot = value => structuredClone(value);
}

const jobs = {
  // `live` false: what is there, again and again until it is closed.
  async stream({ url, live, offset = '-1' }) {
    const items = [];
    for (;;) {
      const response = await client.stream({ url, live, offset, json: true });
      if (live === false) {
        items.push(...(await response.json()));
        offset = response.offset;
        if (response.streamClosed) return { items, closed: true };
        await new Promise(resolve => setTimeout(resolve, 5));
      } else {
        let closed = false;
        const ended = new Promise(resolve => response.subscribeJson(async batch => {
          items.push(...batch.items);
          closed ||= batch.streamClosed;
          if (closed) resolve();
        }));
        await response.closed;
        // That is when the last response has come: the subscriber may not have read its body yet.
        // One without a body (204) is not given to it.
        await Promise.race([ended, new Promise(resolve => setTimeout(resolve, 2000))]);
        return { items, closed: closed || response.streamClosed };
      }
    }
  },
  async resume({ sdk, api, id, messages }) {
    const library = sdk === 'ai7' ? ai7 : ai;
    class Chat extends library.AbstractChat {}
    const state = new State(messages);
    const errors = [];
    const chat = new Chat({ id, transport: new library.DefaultChatTransport({ api }), state, onError: error => errors.push(error.message) });
    await chat.resumeStream();
    return { messages: state.messages, status: chat.status, errors };
  },
};

// All at once: several readers of one log.
const running = [];
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  running.push(jobs[asked.do](asked).catch(error => ({ failed: `${error.name}: ${error.message}` })));
}
for (const job of running) process.stdout.write(`${JSON.stringify(await job)}\n`);
