// One turn on the screen: the question, and the parts of the answer, each made by an item and grown by its deltas.
//
// Events change what is to be shown; `draw`, once a frame, changes the screen. Times are the server's, so that a reload shows the same.

import { button, copyButton, element, link, webAddress } from './elements.js';
import { failureNote } from './failures.js';
import { Markdown } from './markdown.js';

const duration = seconds => (seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`);
const number = value => value.toLocaleString('en');

class Text {
  constructor() {
    this.body = element('div', [], 'text');
    this.element = element('div', [this.body]);
    this.markdown = new Markdown(this.body);
    this.sources = new Set();
  }

  grow(delta) { this.markdown.append(delta); }
  draw() { return this.markdown.draw(); }

  end(item) {
    const text = (item.content ?? []).map(part => part.text ?? part.refusal ?? part.transcript ?? '').join('');
    if (text !== this.markdown.text) {
      this.markdown.clear();
      this.markdown.append(text);
    }
    this.markdown.end();
    for (const part of item.content ?? []) this.element.append(...media(part));
  }

  cut() { this.markdown.end(); }

  cite(annotation) {
    const { url, title } = { ...annotation, ...annotation.url_citation };
    const address = webAddress(url ?? '');
    if (!address || this.sources.has(url)) return;
    this.sources.add(url);
    this.list ??= this.element.appendChild(element('ol', [], 'sources'));
    this.list.append(element('li', [link(url, title || address.host)]));
  }
}

// Folded from the beginning, with its newest words in one line: nothing below it moves when it ends.
class Reasoning {
  constructor(item, began) {
    this.began = began;
    this.label = element('span', ['Thinking…']);
    this.newest = element('span', [], 'newest');
    this.newest.ariaHidden = true;
    this.words = element('div', [], 'words');
    this.element = element('details', [element('summary', [this.label, this.newest]), this.words], 'reasoning');
    this.text = '';
    this.drawn = 0;
  }

  grow(delta) { this.text += delta; }

  draw() {
    if (this.drawn === this.text.length) return true;
    this.words.append(this.text.slice(this.drawn));
    this.newest.textContent = this.text.slice(-120).split('\n').at(-1);
    this.drawn = this.text.length;
    return true;
  }

  end(item, at) {
    this.draw();
    const hidden = this.text ? '' : ', which the provider keeps to itself';
    this.label.textContent = `Thought for ${duration(at - this.began)}${hidden}`;
    this.newest.textContent = '';
    this.element.classList.toggle('hidden', !this.text);
  }

  cut(at) { this.end(null, at); }
}

class Call {
  constructor(item) {
    this.isProviders = item.type === 'server_tool_call';
    this.state = element('span', [], 'state');
    this.arguments = element('pre', [], 'arguments');
    this.arguments.tabIndex = 0;
    this.element = element('div', [element('div', [element('code', [item.name]), this.state], 'title'), this.arguments], 'call');
    this.set('writing', this.isProviders ? 'run by the provider' : 'writing arguments');
    this.text = '';
    this.drawn = 0;
  }

  set(state, words) {
    this.element.dataset.state = state;
    this.state.textContent = words;
  }

  grow(delta) { this.text += delta; }

  draw() {
    if (this.drawn < this.text.length) this.arguments.append(this.text.slice(this.drawn));
    this.drawn = this.text.length;
    return true;
  }

  end(item) {
    this.drawn = this.text.length;
    this.arguments.textContent = pretty(item.arguments ?? item.input ?? '');
    if (item.status === 'incomplete') this.set('cut', 'cut off, not run');
    else this.set('running', this.isProviders ? 'run by the provider' : 'running');
  }

  cut() {
    this.draw();
    if (this.element.dataset.state !== 'done') this.set('cut', 'stopped, not run');
  }

  output(item) {
    if (item.is_error) this.set('cut', 'failed');
    else this.set('done', 'done');
    const text = typeof item.output === 'string' ? item.output : JSON.stringify(item.output, null, 2);
    this.element.append(element('div', [text], 'output'));
  }
}

const PARTS = { message: Text, reasoning: Reasoning, function_call: Call, custom_tool_call: Call, server_tool_call: Call };

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
  // `question` is the event, `at` its time; `act` has what the buttons do (`again`, `edit`, `fresh`) and `now`, the time of the server.
  constructor(question, at, act) {
    Object.assign(this, { question, began: at, at, act });
    this.firstToken = null; // when the first token came
    this.usage = null; // of the response that streams
    this.spent = {}; // of all responses of the turn
    this.parts = new Map(); // index of an item -> its part, of the response that streams
    this.shown = []; // all parts, in their order
    this.calls = new Map(); // call_id -> part
    this.error = null;
    this.stopReason = 'stop';
    this.waiting = element('div', ['Waiting for the model'], 'waiting');
    this.body = element('div', [], 'parts');
    this.answer = element('article', [element('h2', ['Assistant'], 'unseen'), this.body, this.waiting], 'answer streaming');
    this.answer.ariaLabel = 'Assistant';
    this.answer.ariaBusy = true; // read to the end, then aloud
    const asked = element('article', [element('h2', ['You'], 'unseen'), element('div', [question.text], 'words')], 'asked');
    asked.ariaLabel = 'You';
    this.element = element('section', [asked, this.answer], 'turn');
  }

  feed(event, at) {
    this.at = at;
    HANDLERS[event.type]?.call(this, event);
  }

  // Shows what came since the last frame; returns whether everything is shown.
  draw() {
    let all = true;
    for (const part of this.parts.values()) all = part.draw() && all;
    return all;
  }

  added({ index, item }) {
    if (!PARTS[item.type]) return;
    const part = new PARTS[item.type](item, this.at);
    this.parts.set(index, part);
    this.shown.push(part);
    if (item.call_id) this.calls.set(item.call_id, part);
    this.waiting.hidden = true;
    this.body.append(part.element);
  }

  grow(event) {
    this.firstToken ??= this.at;
    this.parts.get(event.index)?.grow(event.delta);
  }

  paragraph(event) {
    const part = this.parts.get(event.index);
    if (part && event.summary_index > (part.paragraph ?? 0)) part.grow('\n\n');
    if (part) part.paragraph = event.summary_index;
    this.grow(event);
  }

  done({ index, item }) {
    this.parts.get(index)?.end(item, this.at);
  }

  // A response ends; where a tool was called the next one follows, and its items are counted from 0 again.
  completed(event) {
    this.draw();
    this.parts.clear();
    this.usage = event.usage;
    this.addUsage();
    this.stopReason = event.stop_reason;
    this.waiting.hidden = event.stop_reason !== 'tool_calls';
  }

  addUsage() {
    for (const [name, count] of Object.entries(this.usage ?? {})) {
      if (typeof count === 'number') this.spent[name] = (this.spent[name] ?? 0) + count;
    }
    this.usage = null;
  }

  // The turn is over: 'done', 'stopped' or 'failed'.
  ended({ reason }) {
    this.draw();
    this.waiting.hidden = true;
    for (const part of this.parts.values()) part.cut(this.at);
    for (const call of this.calls.values()) call.cut(this.at);
    this.parts.clear();
    this.addUsage();
    if (this.error) this.answer.append(failureNote(this.error, this.act.now() - this.at, this.act));
    if (reason === 'stopped') this.answer.append(element('div', ['Stopped. The connection to the model is closed.'], 'stopped'));
    this.answer.classList.remove('streaming');
    this.answer.ariaBusy = false;
    this.answer.append(this.footer());
  }

  footer() {
    const buttons = [];
    if (this.text) buttons.push(copyButton('Copy the answer', () => this.text));
    if (!this.error) buttons.push(button('Answer again', this.act.again, 'again'));
    const facts = this.facts().map(fact => element('span', [fact]));
    return element('footer', [element('div', buttons, 'actions'), element('div', facts, 'facts')]);
  }

  // What was written, as Markdown.
  get text() {
    return this.shown.filter(part => part instanceof Text).map(part => part.markdown.text).join('\n\n');
  }

  facts() {
    const { input_tokens: read, output_tokens: written, cache_read_input_tokens: cached } = this.spent;
    const seconds = this.at - this.firstToken;
    return [
      this.stopReason !== 'stop' && (STOPS[this.stopReason] ?? this.stopReason),
      this.firstToken && `first token ${duration(this.firstToken - this.began)}`,
      written && this.firstToken && seconds > 0.1 && `${number(Math.round(written / seconds))} tokens/s`,
      read !== undefined && `${number(read)} in`,
      written > 0 && `${number(written)} out`,
      cached && `${number(cached)} cached`,
    ].filter(Boolean);
  }
}

const STOPS = {
  length: 'cut by the length limit',
  content_filter: 'stopped by a filter',
  refusal: 'declined',
  pause: 'paused',
  tool_calls: 'stopped at a tool',
};

const HANDLERS = {
  output_item_added: Turn.prototype.added,
  output_text_delta: Turn.prototype.grow,
  refusal_delta: Turn.prototype.grow,
  reasoning_content_delta: Turn.prototype.grow,
  reasoning_summary_delta: Turn.prototype.paragraph,
  function_call_arguments_delta: Turn.prototype.grow,
  annotation_added(event) { this.parts.get(event.index)?.cite?.(event.annotation); },
  output_item_done: Turn.prototype.done,
  server_tool_result(item) { this.calls.get(item.call_id)?.output(item); },
  function_call_output(item) { this.calls.get(item.call_id)?.output(item); },
  token_count(event) { this.usage = event.usage; },
  completed: Turn.prototype.completed,
  failed({ error }) { this.error = error; },
  turn_ended: Turn.prototype.ended,
};
