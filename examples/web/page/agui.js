// A chat with AG-UI's own client: approval of a tool, stop, regenerate. The client keeps the messages; this page draws them when they change.

import { HttpAgent } from './vendor/ag-ui.js';
import { button, element } from './elements.js';
import { failureNote } from './failures.js';
import { MessageView } from './message.js';

const at = id => document.getElementById(id);
const agent = new HttpAgent({ url: 'api/agui', threadId: crypto.randomUUID() });
let interrupts = []; // calls that wait for the user's decision
let failure = null; // of the last run: kind, retryable, retry_after
let running = false;

async function run(resume) {
  [interrupts, failure] = [[], null];
  setRunning(true);
  try {
    await agent.runAgent({ resume }, {
      onMessagesChanged: draw,
      onRunFinishedEvent: ({ interrupts: asked }) => { interrupts = asked ?? []; },
      onCustomEvent: ({ event }) => { if (event.name === 'error') failure = event.value; },
      // The client calls its own stop an error.
      onRunErrorEvent: ({ event }) => { if (event.code !== 'abort') failure ??= { kind: event.code }; },
    });
  } catch (error) {
    // A refusal before the stream has the server's JSON at the end of its message.
    if (error.name !== 'AbortError') failure ??= refusal(error.message);
  }
  setRunning(false);
  draw();
}

function refusal(message) {
  try {
    return JSON.parse(message.slice(message.indexOf('{'))).error;
  } catch {
    return { kind: 'connection', retryable: true };
  }
}

// Forgets the last answer, and asks for another.
function regenerate() {
  const last = agent.messages.findLastIndex(message => message.role === 'user');
  agent.setMessages(agent.messages.slice(0, last + 1));
  return run();
}

function decide(interrupt, approved) {
  const others = interrupts.filter(other => other !== interrupt).map(other => ({ interruptId: other.id, status: 'cancelled' }));
  return run([{ interruptId: interrupt.id, status: 'resolved', payload: { approved } }, ...others]);
}

// --- the screen ---

const views = new Map(); // id of a message -> its view

function draw() {
  for (const message of agent.messages) {
    if (!views.has(message.id)) views.set(message.id, new MessageView(message, at('turns')));
    views.get(message.id).draw(message);
  }
  for (const [id, view] of views) {
    if (agent.messages.some(message => message.id === id)) continue;
    view.root.remove();
    views.delete(id);
  }
  const asked = interrupts.map(interrupt => element('div', [
    element('p', ['May this call run?']),
    button('Allow', () => decide(interrupt, true), 'choice'),
    button('Do not allow', () => decide(interrupt, false), 'choice'),
  ], 'approval'));
  const again = agent.messages.at(-1)?.role === 'assistant' && interrupts.length === 0 ? [button('Answer again', regenerate, 'again')] : [];
  const act = { again: regenerate, edit: () => at('text').focus(), fresh: () => location.reload() };
  at('end').replaceChildren(...(running ? [] : failure ? [failureNote(failure, 0, act)] : [...asked, ...again]));
}

function setRunning(is) {
  running = is;
  [at('send').hidden, at('stop').hidden, at('log').ariaBusy] = [is, !is, is];
  draw();
}

at('stop').addEventListener('click', () => agent.abortRun());
at('composer').addEventListener('submit', event => {
  event.preventDefault();
  const words = at('text').value.trim();
  if (running || !words) return;
  at('text').value = '';
  agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: words });
  run();
});
at('text').addEventListener('keydown', event => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  at('composer').requestSubmit();
});
