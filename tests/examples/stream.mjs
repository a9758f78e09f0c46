// Tries the page's stream module against a server that does what a case asks for: `node stream.mjs MODULE` reads a JSON list of cases from
// standard input and prints for each what `answer` did.
//
//   case {status, type, chunks: [text], end: "clean" | "cut" | "open", pace: ms, idle: s, stopAt: n, throwAt: n, aborted: bool}
//   said {events, error: {name, kind, message, retryable, retryAfter, status} | null, closed: the server saw its client go}

import { createServer } from 'node:http';
import { once } from 'node:events';

const { answer } = await import(process.argv[2]);

let input = '';
for await (const chunk of process.stdin) input += chunk;
const cases = JSON.parse(input);

const pause = ms => new Promise(resolve => { setTimeout(resolve, ms); });
const closed = new Map();

const server = createServer(async (request, response) => {
  const number = Number(request.url.slice(1));
  const { status = 200, type = 'text/event-stream', headers = {}, chunks = [], end = 'clean', pace = 0 } = cases[number];
  closed.set(number, once(response, 'close').then(() => !response.writableFinished));
  let body = '';
  for await (const piece of request) body += piece;
  response.writeHead(status, { 'content-type': type, ...headers });
  response.flushHeaders();
  for (const chunk of chunks) {
    response.write(chunk.replace('BODY', JSON.stringify(body).slice(1, -1)));
    await pause(pace);
  }
  if (end === 'clean') response.end();
  else if (end === 'cut') response.destroy();
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address();

async function run({ idle = 5, stopAt = 0, throwAt = 0, aborted = false, nobody = false }, number) {
  const events = [];
  const stop = new AbortController();
  if (aborted) stop.abort();
  const onEvent = event => {
    events.push(event);
    if (events.length === throwAt) throw new RangeError('the page is broken');
    if (events.length === stopAt) stop.abort();
  };
  let error = null;
  try {
    await answer(`http://127.0.0.1:${nobody ? 1 : port}/${number}`, { number }, { signal: stop.signal, idle, onEvent });
  } catch ({ name, kind, message, retryable, retryAfter, status }) {
    error = { name, kind, message, retryable, retryAfter, status };
  }
  // A request that never reached the server has no connection to close.
  const left = await Promise.race([closed.get(number) ?? true, pause(1000).then(() => 'still open')]);
  return { events, error, closed: left };
}

const said = await Promise.all(cases.map(run));
server.close();
server.closeAllConnections();
console.log(JSON.stringify(said));
