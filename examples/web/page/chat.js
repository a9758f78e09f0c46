// The page: sends what is typed, shows what comes, stops when asked to.

import { element } from './markdown.js';
import { events } from './stream.js';
import { Turn } from './view.js';

const at = id => document.getElementById(id);
const [log, text, send, stop, think, tools, welcome] = ['log', 'text', 'send', 'stop', 'think', 'tools', 'welcome'].map(at);

const LONG = `Streaming in three points:

1. **Bytes** arrive in any pieces.
2. A *parser* turns them into events:

\`\`\`python
async for event in stream:
    screen.show(event)
\`\`\`

3. The screen grows, and Stop really stops.`;
const IDEAS = [
  { label: 'Say hello', words: 'Hello! What are you?' },
  { label: 'Stream some Markdown', words: LONG },
  { label: 'Think, then call a tool', words: 'What is the weather in Lisbon?', think: true, tools: true },
];

let conversation = crypto.randomUUID();
let running = null;

async function ask(words) {
  if (running || !words.trim()) return;
  welcome.hidden = true;
  running = new AbortController();
  busy(true);
  const turn = new Turn(log, words);
  const again = () => { turn.element.remove(); ask(words); };
  log.lastElementChild.scrollIntoView({ block: 'end' });
  try {
    const body = { conversation, text: words, think: think.checked, tools: tools.checked };
    for await (const event of events(body, running.signal)) {
      const follow = atEnd();
      if (event.type === 'failed') turn.fail(event.error, again);
      else (BESIDE[event.type] ?? (it => turn.feed(it)))(event);
      if (follow) log.scrollTop = log.scrollHeight;
    }
    if (!turn.ended) turn.fail({ kind: 'truncated', message: "The page's server ended the stream before its end." }, again);
  } catch (error) {
    if (running.signal.aborted) turn.stop();
    else turn.fail({ kind: 'connection', message: error.message }, again);
  }
  running = null;
  busy(false);
  log.scrollTop = log.scrollHeight;
  if (matchMedia('(hover: hover)').matches) text.focus();
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

const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 60;

function busy(is) {
  stop.hidden = !is;
  send.hidden = is;
  document.body.classList.toggle('busy', is);
  log.ariaBusy = is;
  at('hint').textContent = is ? 'Esc stops' : 'Enter sends, Shift+Enter makes a new line';
  ready();
}

function ready() {
  send.disabled = !text.value.trim();
  text.style.height = 'auto';
  text.style.height = `${text.scrollHeight}px`;
}

at('composer').addEventListener('submit', event => {
  event.preventDefault();
  if (running) return;
  const words = text.value;
  text.value = '';
  ready();
  ask(words);
});
text.addEventListener('input', ready);
text.addEventListener('keydown', event => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  at('composer').requestSubmit();
});
stop.addEventListener('click', () => running?.abort());
document.addEventListener('keydown', event => { if (event.key === 'Escape') running?.abort(); });
at('new').addEventListener('click', () => {
  running?.abort();
  conversation = crypto.randomUUID();
  for (const turn of log.querySelectorAll('.turn')) turn.remove();
  welcome.hidden = false;
  text.focus();
});

at('ideas').append(...IDEAS.map(idea => {
  const button = element('button', [idea.label]);
  button.type = 'button';
  button.addEventListener('click', () => {
    think.checked = Boolean(idea.think);
    tools.checked = Boolean(idea.tools);
    ask(idea.words);
  });
  return button;
}));
ready();
