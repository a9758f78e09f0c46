// Asks, and hands over the events of the answer as they come.
//
//     await answer('ask', { text: 'Hello' }, { signal, idle: 60, onEvent: event => show(event) });
//
// It reads server-sent events with one JSON object each, or lines of JSON. EventSource cannot send a body and asks again by itself, so the
// frames are read from fetch.
//
// However it ends, the connection is closed then, and with it the server's connection to the model: at the end of the stream, when `signal`
// is aborted, when `onEvent` throws, when nothing came for `idle` seconds. A ping of the server counts as something.

// Why there is no answer, or no more of it.
//   kind        'stopped' (signal), 'stalled' (idle), 'connection', 'truncated', 'malformed', or what the server said: 'rate_limited', …
//   retryable   whether asking again may help
//   retryAfter  in how many seconds, if the server named a time
//   status      HTTP status, if there was one
export class AnswerError extends Error {
  constructor(kind, message, { retryable = false, retryAfter = null, status = null } = {}) {
    super(message);
    Object.assign(this, { name: 'AnswerError', kind, retryable, retryAfter, status });
  }
}

export async function answer(url, body, { signal = null, idle = 60, onEvent }) {
  const controller = new AbortController();
  const watchdog = new Watchdog(idle, () => {
    controller.abort(new AnswerError('stalled', `Nothing came for ${idle} seconds.`, { retryable: true }));
  });
  const stop = () => controller.abort(new AnswerError('stopped', 'It was stopped.'));
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop);
  try {
    const response = await connected(fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: controller.signal,
    }), controller.signal);
    if (!response.ok) throw await refusal(response);
    await readLines(response, controller.signal, watchdog, onEvent);
  } finally {
    signal?.removeEventListener('abort', stop);
    watchdog.end();
    controller.abort();
  }
}

// What fetch and its reader reject with: our own reason where we closed the connection, else the network's.
async function connected(promise, signal) {
  try {
    return await promise;
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw new AnswerError('connection', `No connection: ${error.message}`, { retryable: true });
  }
}

async function readLines(response, signal, watchdog, onEvent) {
  const isFramed = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let open = ''; // the line that is not complete
  for (;;) {
    watchdog.start();
    const { value, done } = await connected(reader.read(), signal);
    watchdog.end(); // while `onEvent` works, nobody waits for the server
    if (done) break;
    const lines = value.split('\n');
    lines[0] = open + lines[0];
    open = lines.pop();
    for (const line of lines) {
      const event = parsed(line.trim(), isFramed);
      if (event !== null) await onEvent(event);
      if (signal.aborted) throw signal.reason;
    }
  }
  if (open.trim()) await onEvent(lastLine(open, isFramed));
}

// A last line without its end: of lines of JSON it may be complete, a frame without its blank line never is.
function lastLine(line, isFramed) {
  try {
    if (!isFramed) return JSON.parse(line);
  } catch {
    // It was cut.
  }
  throw new AnswerError('truncated', 'The answer broke off.', { retryable: true });
}

// The JSON of a line; null for a line without any: a comment (a ping), an id, a blank.
function parsed(line, isFramed) {
  let text = line;
  if (isFramed) text = line.startsWith('data:') ? line.slice('data:'.length) : '';
  if (text.trim() === '') return null;
  try {
    return JSON.parse(text);
  } catch {
    throw new AnswerError('malformed', `The server sent something that is no event: ${text.slice(0, 80)}`);
  }
}

// The error that `streamlib.web` sends in place of a stream.
async function refusal(response) {
  let error = {};
  try {
    error = (await response.json()).error ?? {};
  } catch {
    // A proxy's page, or nothing: the status says enough.
  }
  const { kind = 'server_error', message = `The server answered ${response.status}.`, retryable = response.status >= 500 } = error;
  const seconds = error.retry_after ?? Number(response.headers.get('retry-after') ?? NaN);
  const retryAfter = Number.isFinite(seconds) ? seconds : null;
  return new AnswerError(kind, message, { retryable, retryAfter, status: response.status });
}

// Calls `bark` when it was started `seconds` ago and not ended since.
class Watchdog {
  constructor(seconds, bark) {
    this.seconds = seconds;
    this.bark = bark;
    this.timer = null;
    this.start(); // the first byte has to come in time too
  }

  start() {
    this.end();
    this.timer = setTimeout(this.bark, this.seconds * 1000);
  }

  end() { clearTimeout(this.timer); }
}
