// The page: sends what is typed, and shows the conversation as the server has it. The tab that asks and every other one read the same
// entries, so a reload, a second tab and a lost connection need nothing of their own.

import { button, element } from './elements.js';
import { Follower } from './scroll.js';
import { answer } from './stream.js';
import { Turn } from './view.js';

const at = id => document.getElementById(id);
const [log, turns, text, send, stop] = ['log', 'turns', 'text', 'send', 'stop'].map(at);
const [think, tools, welcome, line] = ['think', 'tools', 'welcome', 'line'].map(at);
const follower = new Follower(log, at('jump'));

const IDLE = 40; // seconds without a byte; the server pings every 15
const LONGEST_WAIT = 30; // seconds between two tries to reach the server
const BUDGET = 8; // milliseconds of a frame for what came
const PORTION = 8_000; // characters of a frame: a long conversation is drawn over some frames

const LONG = `Streaming in three points:

1. **Bytes** arrive in any pieces.
2. A *parser* turns them into events:

\`\`\`python
async for event in stream:
    screen.show(event)
\`\`\`

| wire | complete when |
|---|---|
| messages | \`message_stop\` |
| chat | \`[DONE]\`, or a finish reason |

3. The screen grows, and Stop really stops.`;
const IDEAS = [
  { label: 'Say hello', words: 'Hello! What are you?' },
  { label: 'Stream some Markdown', words: LONG },
  { label: 'Think, then call a tool', words: 'What is the weather in Lisbon?', think: true, tools: true },
];

// One conversation, named in the address: a reload and a copied address lead to it.
class Conversation {
  constructor(name) {
    this.name = name;
    this.leaving = new AbortController();
    this.nap = new AbortController(); // nobody looks: a browser has six connections to a server, for all tabs together
    this.answering = false; // of what came; `running` of what is shown
    this.entries = []; // that came and are not shown yet
    this.count = 0; // entries that came
    this.turn = null; // the last one
    this.running = false; // the last one is being answered
    this.frame = null;
    this.clock = 0; // the server's time minus ours
  }

  leave() {
    this.leaving.abort();
    cancelAnimationFrame(this.frame);
  }

  // Reads the entries, again and again until the page leaves the conversation.
  async follow() {
    let failures = 0;
    const onEvent = entry => {
      failures = 0;
      this.take(entry);
    };
    while (!this.leaving.signal.aborted) {
      await visible();
      this.nap = new AbortController();
      const signal = AbortSignal.any([this.leaving.signal, this.nap.signal]);
      try {
        await answer(this.url('events'), { after: this.count }, { signal, idle: IDLE, onEvent });
      } catch (error) {
        if (error.name !== 'AnswerError') throw error; // a mistake of this page
      }
      if (signal.aborted) continue;
      failures += 1;
      await this.pause(Math.min(2 ** (failures - 1), LONGEST_WAIT));
    }
  }

  // Closes the connection of a tab in the background, unless an answer is coming.
  rest() {
    if (document.hidden && !this.answering) this.nap.abort();
  }

  // Counts the seconds to the next try; the button does not wait for it.
  async pause(seconds) {
    const end = new AbortController();
    const left = element('span');
    left.ariaHidden = true; // else every second is read aloud
    status('No connection to the server. ', left, button('Try now', () => end.abort()));
    this.leaving.signal.addEventListener('abort', () => end.abort());
    for (let count = seconds; count > 0 && !end.signal.aborted; count -= 1) {
      left.textContent = `Next try in ${count} s.`;
      await new Promise(resolve => {
        setTimeout(resolve, 1000);
        end.signal.addEventListener('abort', resolve);
      });
    }
    status('');
  }

  url(action) { return `conversations/${encodeURIComponent(this.name)}/${action}`; }

  take(entry) {
    if (entry.event.type === 'hello') {
      this.clock = entry.at - performance.now() / 1000;
      if (entry.event.reset) this.clear();
    } else {
      this.count = entry.n;
      this.answering = entry.event.type !== 'turn_ended';
      this.entries.push(entry);
      this.frame ??= requestAnimationFrame(() => this.show());
      this.rest();
    }
  }

  clear() {
    this.count = 0;
    this.entries = [];
    this.turn = null;
    this.setRunning(false);
    turns.replaceChildren();
  }

  // Once a frame: what came, at most for some milliseconds, and then what is to be drawn of it.
  show() {
    this.frame = null;
    const began = performance.now();
    try {
      let characters = 0;
      let taken = 0;
      while (taken < this.entries.length && characters < PORTION && performance.now() - began < BUDGET) {
        const entry = this.entries[taken];
        taken += 1;
        characters += entry.event.delta?.length ?? 0;
        this.apply(entry);
      }
      this.entries.splice(0, taken); // once: to shift one by one would be quadratic
      const all = this.turn?.draw() ?? true;
      if (!all || this.entries.length > 0) this.frame = requestAnimationFrame(() => this.show());
    } catch (error) {
      this.leave();
      status('This page could not show the answer. A reload may help.', button('Reload', () => location.reload()));
      throw error;
    }
    follower.grown();
  }

  apply({ event, at: time }) {
    if (event.type === 'question') this.begin(event, time);
    else this.turn?.feed(event, time);
    BESIDE[event.type]?.(event);
    if (event.type === 'turn_ended') this.setRunning(false);
  }

  begin(question, time) {
    welcome.hidden = true;
    if (question.replaces !== null) this.turn?.element.remove();
    this.turn?.element.classList.remove('last');
    this.turn = new Turn(question, time, {
      again: () => this.ask({ ...question, replaces: question.turn }),
      edit: () => { text.value = question.text; ready(); text.focus(); },
      fresh: () => open(crypto.randomUUID()),
      now: () => performance.now() / 1000 + this.clock,
    });
    this.turn.element.classList.add('last');
    turns.append(this.turn.element);
    this.setRunning(true);
  }

  setRunning(running) {
    this.running = running;
    stop.hidden = !running;
    send.hidden = running;
    document.body.classList.toggle('busy', running);
    at('hint').textContent = running ? 'Esc stops' : 'Enter sends, Shift+Enter makes a new line';
    ready();
  }

  async ask({ text: words, think: thinks, tools: uses, replaces = null }) {
    follower.toEnd();
    return this.post('questions', { text: words, think: thinks, tools: uses, replaces });
  }

  // Returns whether the server took it.
  async post(action, body) {
    try {
      await answer(this.url(action), body, { onEvent() {} });
      return true;
    } catch (error) {
      status(error.kind === 'connection' ? 'No connection to the server: nothing was sent.' : error.message);
      return false;
    }
  }
}

const BESIDE = {
  created({ model }) { if (model) at('model').textContent = model; },
  rate_limits(event) {
    const windows = [['requests', event.requests], ['tokens', event.tokens]].filter(([, window]) => window?.remaining !== undefined);
    at('limits').replaceChildren(...windows.map(meter));
  },
};

function meter([name, { limit, remaining }]) {
  const part = limit ? Math.min(1, remaining / limit) : 1;
  const filled = element('i');
  filled.style.width = `${100 * part}%`;
  const bar = element('span', [filled], part < 0.2 ? 'left few' : 'left');
  bar.ariaHidden = true; // the words say it
  return element('span', [bar, `${remaining.toLocaleString('en')} ${name} left`]);
}

// Resolves when somebody looks at the page.
async function visible() {
  while (document.hidden) await new Promise(resolve => { document.addEventListener('visibilitychange', resolve, { once: true }); });
}

function status(words, ...more) {
  line.replaceChildren(...(words ? [element('span', [words]), ...more] : []));
}

function ready() {
  send.disabled = !text.value.trim();
  text.style.height = 'auto';
  text.style.height = `${text.scrollHeight}px`;
}

let conversation = null;

function open(name, { push = true } = {}) {
  conversation?.leave();
  if (push) history.pushState(null, '', `?c=${name}`);
  conversation = new Conversation(name);
  conversation.clear();
  welcome.hidden = false;
  status('');
  if (matchMedia('(hover: hover)').matches) text.focus(); // on a phone the keyboard would cover the page
  conversation.follow();
}

async function ask(words, options = { think: think.checked, tools: tools.checked }) {
  if (conversation.running || !words.trim()) return;
  text.value = '';
  ready();
  const taken = await conversation.ask({ text: words, ...options });
  if (!taken && !text.value) text.value = words; // nothing that was typed is lost
  ready();
}

function halt() {
  if (conversation.running) conversation.post('stop', {});
}

at('composer').addEventListener('submit', event => {
  event.preventDefault();
  ask(text.value);
});
text.addEventListener('input', ready);
text.addEventListener('keydown', event => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  ask(text.value);
});
stop.addEventListener('click', halt);
document.addEventListener('visibilitychange', () => conversation.rest());
document.addEventListener('keydown', event => { if (event.key === 'Escape') halt(); });
at('new').addEventListener('click', () => open(crypto.randomUUID()));
addEventListener('popstate', () => open(named() ?? crypto.randomUUID(), { push: false }));

const named = () => new URLSearchParams(location.search).get('c');

at('ideas').append(...IDEAS.map(idea => button(idea.label, () => {
  think.checked = Boolean(idea.think);
  tools.checked = Boolean(idea.tools);
  ask(idea.words);
})));
const name = named() ?? crypto.randomUUID();
history.replaceState(null, '', `?c=${name}`);
open(name, { push: false });
