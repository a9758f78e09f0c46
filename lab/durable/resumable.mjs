// Streams of npm's `resumable-stream` on a Redis server: written by one process, resumed by another.
//
//   node resumable.mjs HOME write URL STREAMS EVENTS PAUSE_MS    writes all of them; then {cpu, rss MB, took}
//   node resumable.mjs HOME read URL TIMEOUT_MS                  stdin: {id, skip, after} a line; `after`: ms from now
//                                                                stdout: {id, skip, state, text}
//   state: whole (it ended), done (null), missing (undefined), silent (no end in time), error

import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [home, mode, url, ...numbers] = process.argv.slice(2);
const load = async path => { const found = await import(pathToFileURL(join(home, 'node_modules', path)).href); return found.default ?? found; };
const [{ createResumableStreamContext }, { createClient }] = await Promise.all(['resumable-stream/dist/index.js', 'redis/dist/index.js'].map(load));
const publisher = await createClient({ url }).connect();
const subscriber = await createClient({ url }).connect();
const kept = [];
const context = createResumableStreamContext({ waitUntil: promise => kept.push(promise), publisher, subscriber });
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
const frame = n => `data: {"type":"text-delta","id":"0","delta":"word ${n} "}\n\n`;

async function drain(stream, onText = () => {}) {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onText(value);
  }
}

if (mode === 'write') {
  const [streams, events, pause] = numbers.map(Number);
  const make = () => new ReadableStream({
    async start(controller) {
      for (let n = 0; n < events; n += 1) { controller.enqueue(frame(n)); await sleep(pause); }
      controller.close();
    },
  });
  const began = process.cpuUsage();
  const memory = process.memoryUsage().rss;
  const started = performance.now();
  process.stdout.write('started\n');
  const all = [];
  for (let n = 0; n < streams; n += 1) all.push(context.createNewResumableStream(`s-${n}`, make).then(drain));
  await Promise.all(all);
  const { user, system } = process.cpuUsage(began);
  process.stdout.write(`${JSON.stringify({ cpu: (user + system) / 1e6, 'rss MB': (process.memoryUsage().rss - memory) / 1e6, took: (performance.now() - started) / 1000 })}\n`);
  await sleep(1000);
  process.exit(0);
}

const [timeout] = numbers.map(Number);
async function resume({ id, skip, after }) {
  await sleep(after);
  let text = '';
  try {
    const stream = await Promise.race([context.resumeExistingStream(id, skip), sleep(timeout).then(() => 'late')]);
    if (stream === null) return { id, skip, state: 'done' };
    if (stream === undefined) return { id, skip, state: 'missing' };
    if (stream === 'late') return { id, skip, state: 'silent', text };
    const state = await Promise.race([drain(stream, value => { text += value; }).then(() => 'whole'), sleep(timeout).then(() => 'silent')]);
    return { id, skip, state, text };
  } catch (error) {
    return { id, skip, state: 'error', text: error.message };
  }
}

const running = [];
for await (const line of createInterface({ input: process.stdin })) running.push(resume(JSON.parse(line)));
const lines = [];
for (const result of running) lines.push(`${JSON.stringify(await result)}\n`);
// To the last byte: an exit would cut what a pipe has not taken.
process.stdout.write(lines.join(''), () => process.exit(0));
