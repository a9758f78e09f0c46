// One turn on the screen: what was asked, and the parts of the answer, each made by an item and grown by its deltas.

import { Markdown, element, link, webAddress } from './markdown.js';

const seconds = milliseconds => (milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`);
const number = value => value.toLocaleString('en');

class Text {
  constructor() {
    this.element = element('div', [], 'text');
    this.markdown = new Markdown(this.element);
    this.sources = new Map();
  }
  grow(delta) { this.markdown.append(delta); }
  done(item) {
    const said = (item.content ?? []).map(part => part.text ?? part.refusal ?? part.transcript ?? '').join('');
    if (said !== this.markdown.text) this.markdown.replace(said);
    this.markdown.end();
    for (const part of item.content ?? []) this.element.append(...media(part));
    this.element.hidden = this.element.childNodes.length === 0;
  }
  cite(annotation) {
    const { url, title } = { ...annotation, ...annotation.url_citation };
    const address = webAddress(url ?? '');
    if (!address || this.sources.has(url)) return;
    this.sources.set(url, title);
    this.list ??= element('ol', [], 'sources');
    this.list.append(element('li', [link(url, title || address.host)]));
    this.element.after(this.list);
  }
}

class Thought {
  constructor() {
    this.began = performance.now();
    this.label = element('summary', ['Thinking…']);
    this.text = element('div', [], 'words');
    this.element = element('details', [this.label, this.text], 'thought');
    this.element.open = true;
  }
  grow(delta) { this.text.append(delta); }
  done(item) {
    const readable = Boolean(this.text.textContent);
    this.label.textContent = `Thought for ${seconds(performance.now() - this.began)}${readable ? '' : ', sealed by the provider'}`;
    this.element.open = false;
    this.element.classList.toggle('sealed', !readable);
  }
}

class Call {
  constructor(item) {
    this.state = element('span', ['writing'], 'state');
    this.name = element('code', [item.name]);
    this.arguments = element('pre', [], 'arguments');
    this.element = element('div', [element('div', [this.name, this.state], 'title'), this.arguments], 'call');
    this.set('writing', item.type === 'server_tool_call' ? 'run by the provider' : 'writing arguments');
  }
  set(state, words) { this.element.dataset.state = state; this.state.textContent = words; }
  grow(delta) { this.arguments.append(delta); }
  done(item) {
    this.arguments.textContent = pretty(item.arguments ?? item.input ?? '');
    if (item.status === 'incomplete') this.set('cut', 'cut off, not run');
    else this.set('running', item.type === 'server_tool_call' ? 'run by the provider' : 'running');
  }
  answer(output) {
    this.set('done', 'done');
    const text = typeof output === 'string' ? output : JSON.stringify(output, null, 2);
    this.element.append(element('div', [text], 'output'));
  }
}

const PARTS = {
  message: Text,
  reasoning: Thought,
  function_call: Call,
  custom_tool_call: Call,
  server_tool_call: Call,
};

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function* media(part) {
  const source = part.url ?? (part.data ? `data:${part.media_type};base64,${part.data}` : null);
  const kind = { image: 'img', audio: 'audio' }[part.type];
  if (source && kind) yield Object.assign(element(kind), { src: source, controls: true, alt: 'image of the answer' });
}

export class Turn {
  constructor(log, asked) {
    this.began = performance.now();
    this.firstToken = null;
    this.spent = {};
    this.ended = false;
    this.parts = new Map();
    this.calls = new Map();
    this.answer = element('div', [], 'answer streaming');
    this.answer.append(element('span', [], 'waiting'));
    this.element = element('section', [element('div', [asked], 'asked'), this.answer], 'turn');
    log.append(this.element);
  }

  feed(event) { HANDLERS[event.type]?.call(this, event); }

  show(node) {
    this.answer.querySelector('.waiting')?.remove();
    this.answer.append(node);
  }

  grow(event) {
    this.firstToken ??= performance.now();
    this.parts.get(event.index)?.grow(event.delta);
  }

  added({ index, item }) {
    if (!PARTS[item.type]) return;
    const part = new PARTS[item.type](item);
    this.parts.set(index, part);
    if (item.call_id) this.calls.set(item.call_id, part);
    this.show(part.element);
  }

  paragraph(event) {
    const part = this.parts.get(event.index);
    if (part && event.summary_index > (part.paragraph ?? 0)) part.grow('\n\n');
    if (part) part.paragraph = event.summary_index;
    this.grow(event);
  }

  // A response ends; where a tool was called, the next one of this turn follows, and its items are counted from 0 again.
  complete(event) {
    this.parts.clear();
    this.usage = event.usage;
    this.spend();
    if (event.stop_reason === 'tool_calls') {
      this.show(element('span', [], 'waiting'));
      this.ended = false;
    } else {
      this.ended = true;
      this.finish(event.stop_reason === 'stop' ? [] : [STOPS[event.stop_reason] ?? event.stop_reason]);
    }
  }

  // What a turn costs is what all its responses cost.
  spend() {
    for (const [name, count] of Object.entries(this.usage ?? {})) {
      if (typeof count === 'number') this.spent[name] = (this.spent[name] ?? 0) + count;
    }
    this.usage = null;
  }

  fail(error, retry) {
    this.ended = true;
    const wait = error.retry_after ? ` in ${Math.ceil(error.retry_after)} s` : '';
    const again = element('button', [`Try again${wait}`]);
    again.type = 'button';
    again.addEventListener('click', retry);
    const title = element('strong', [FAILURES[error.kind] ?? 'It did not work']);
    const code = error.message.includes(error.code) ? null : error.code; // said once
    const facts = [error.kind, error.status && `HTTP ${error.status}`, code].filter(Boolean).join(' · ');
    const note = element('div', [title, element('span', [error.message]), element('small', [facts]), again], 'error');
    note.setAttribute('role', 'alert');
    this.show(note);
    this.finish();
  }

  stop() {
    this.ended = true;
    for (const part of this.parts.values()) part.set?.('cut', 'stopped, not run');
    this.show(element('div', ['Stopped. The connection to the model is closed.'], 'stopped'));
    this.finish();
  }

  finish(words = []) {
    this.answer.querySelector('.waiting')?.remove();
    this.answer.classList.remove('streaming');
    const now = performance.now();
    this.spend();
    const usage = this.spent;
    const written = usage.output_tokens;
    const speed = written && this.firstToken && now > this.firstToken ? Math.round(written / ((now - this.firstToken) / 1000)) : null;
    const facts = [
      ...words,
      this.firstToken && `first token ${seconds(this.firstToken - this.began)}`,
      speed && `${number(speed)} tokens/s`,
      usage.input_tokens !== undefined && `${number(usage.input_tokens)} in`,
      written > 0 && `${number(written)} out`,
      usage.cache_read_input_tokens && `${number(usage.cache_read_input_tokens)} cached`,
    ].filter(Boolean);
    if (facts.length > 0) this.answer.append(element('footer', facts.map(fact => element('span', [fact]))));
  }
}

const FAILURES = {
  authentication: 'The key is missing or wrong',
  permission: 'The key may not do this',
  rate_limited: 'Too many requests',
  quota_exhausted: 'The credits are used up',
  overloaded: 'The provider is busy',
  context_window_exceeded: 'The conversation is too long',
  not_found: 'There is no such model',
  content_filter: 'A filter stopped the question',
  server_error: 'The provider failed',
  connection: 'No connection',
  truncated: 'The answer broke off',
  stalled: 'No answer came',
  deadline: 'It took too long',
};

const STOPS = { length: 'cut by the length limit', content_filter: 'stopped by a filter', refusal: 'declined', pause: 'paused' };

const HANDLERS = {
  output_item_added: Turn.prototype.added,
  output_text_delta: Turn.prototype.grow,
  refusal_delta: Turn.prototype.grow,
  reasoning_content_delta: Turn.prototype.grow,
  reasoning_summary_delta: Turn.prototype.paragraph,
  function_call_arguments_delta: Turn.prototype.grow,
  annotation_added(event) { this.parts.get(event.index)?.cite?.(event.annotation); },
  output_item_done(event) { this.parts.get(event.index)?.done(event.item); },
  server_tool_result(item) { this.calls.get(item.call_id)?.answer(item.output); },
  function_call_output(item) { this.calls.get(item.call_id)?.answer(item.output); },
  token_count(event) { this.usage = event.usage; },
  completed: Turn.prototype.complete,
};
