// Markdown while it grows. Nodes are made by hand and never from HTML, so nothing a model writes can become part of the page.
//
// What is settled (a block that a blank line has ended) is rendered once. The last block is rendered again while it is short, and later
// each time it has grown by an eighth; in between its new text is appended as it is. So the work is linear in the text, whatever a model
// writes: no pattern below is tried from each of many places to the end of the text.

const SHORT = 1000;
const GROWTH = 1.125;
const DEPTH = 12;

export class Markdown {
  constructor(element) {
    this.element = element;
    this.clear();
  }

  clear() {
    this.text = '';
    this.block = ''; // complete lines of the last block
    this.line = ''; // the line that is not complete
    this.fence = null; // that of the code block which is open
    this.begun = false; // the block has a line that is not blank
    this.tail = []; // nodes of the last block
    this.rendered = 0; // characters of the last block that they show
    this.raw = false; // text was appended to them as it is
  }

  append(delta) {
    this.text += delta;
    let from = 0;
    for (let newline = delta.indexOf('\n'); newline >= 0; newline = delta.indexOf('\n', from)) {
      this.line += delta.slice(from, newline);
      this.endLine();
      from = newline + 1;
    }
    this.line += delta.slice(from);
    this.show(from === 0 ? delta : null);
  }

  // The text is complete.
  end() {
    if (this.raw) this.render();
  }

  replace(text) {
    this.element.replaceChildren();
    this.clear();
    this.append(text);
    this.end();
  }

  endLine() {
    const line = this.line;
    this.line = '';
    const mark = FENCE.exec(line)?.[1];
    if (this.fence) {
      this.block += `${line}\n`;
      if (mark?.startsWith(this.fence)) this.settle();
      return;
    }
    if (mark && this.begun) this.settle();
    this.block += `${line}\n`;
    if (mark) this.fence = mark;
    else if (line.trim()) this.begun = true;
    else if (this.begun) this.settle();
  }

  settle() {
    this.removeTail();
    for (const node of blocks(this.block.split('\n'), 0)) this.element.append(node);
    this.block = '';
    this.fence = null;
    this.begun = false;
    this.rendered = 0;
  }

  // `delta` is the text that came, null if lines ended in it.
  show(delta) {
    const length = this.block.length + this.line.length;
    if (length < SHORT || length >= this.rendered * GROWTH || this.tail.length === 0) {
      this.render();
      return;
    }
    const missing = delta ?? `${this.block}${this.line}`.slice(this.shown);
    this.shown = length;
    this.raw = true;
    lastBlock(this.tail.at(-1)).append(missing);
  }

  render() {
    this.removeTail();
    this.tail = blocks(`${this.block}${this.line}`.split('\n'), 0);
    this.rendered = this.block.length + this.line.length;
    this.shown = this.rendered;
    for (const node of this.tail) this.element.append(node);
  }

  removeTail() {
    for (const node of this.tail) node.remove();
    this.tail = [];
    this.raw = false;
  }
}

const BLOCK_TAGS = new Set(['P', 'PRE', 'UL', 'OL', 'LI', 'BLOCKQUOTE', 'DIV', 'TABLE', 'TBODY', 'THEAD', 'TR', 'TD', 'TH', 'H3', 'H4', 'H5', 'H6']);

// The innermost block at the end of a node: what grows, grows there.
function lastBlock(node) {
  let last = node;
  for (let next = node.lastElementChild; next && (BLOCK_TAGS.has(next.tagName) || last.tagName === 'PRE'); next = next.lastElementChild) last = next;
  return last;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(?=\S)/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const LIST = /^(\s*)([-*+]|\d{1,9}[.)])[ \t]+(.*)/;
const COLUMNS = /^[\s:|-]+$/;

// Each takes the lines from `at` on and returns its nodes and the line behind them; the first whose test holds.
const KINDS = [
  [line => FENCE.test(line), code],
  [line => HEADING.test(line), heading],
  [line => RULE.test(line), (lines, at) => [[element('hr')], at + 1]],
  [line => QUOTE.test(line), quote],
  [line => LIST.test(line), list],
  [isTable, table],
];

function kindAt(lines, at) {
  return KINDS.find(([test]) => test(lines[at], lines[at + 1]))?.[1];
}

function isTable(line, next) {
  return isRow(line) && next !== undefined && isRow(next) && COLUMNS.test(next);
}

function isRow(line) {
  const row = line.trim();
  return row.length > 1 && row.startsWith('|') && row.endsWith('|');
}

function blocks(lines, depth) {
  const nodes = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const make = depth < DEPTH ? kindAt(lines, at) : undefined;
    const [made, next] = (make ?? paragraph)(lines, at, depth);
    for (const node of made) nodes.push(node);
    at = next;
  }
  return nodes;
}

// A paragraph ends where a line begins something else: models often leave out the blank line before a list.
function paragraph(lines, at, depth) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !(depth < DEPTH && kindAt(lines, end))) end += 1;
  return [[element('p', inline(lines.slice(at, end).join('\n').trimEnd()))], end];
}

function code(lines, at) {
  const [start, fence] = FENCE.exec(lines[at]);
  let end = at + 1;
  while (end < lines.length && !FENCE.exec(lines[end])?.[1].startsWith(fence)) end += 1;
  // An open block has no blank end: its last line is only begun.
  const text = lines.slice(at + 1, end).join('\n');
  const pre = element('pre', [element('code', [end < lines.length ? text : text.trimEnd()])]);
  const language = lines[at].slice(start.length).trim();
  if (language) pre.dataset.language = language.split(/\s/)[0];
  return [[pre], end + 1];
}

function heading(lines, at) {
  const marks = HEADING.exec(lines[at]);
  let words = lines[at].slice(marks[0].length).trimEnd();
  let end = words.length;
  while (end > 0 && words[end - 1] === '#') end -= 1;
  if (end === 0 || /\s/.test(words[end - 1])) words = words.slice(0, end).trimEnd();
  return [[element(`h${Math.min(marks[1].length + 2, 6)}`, inline(words))], at + 1];
}

// The rest of the block: a line without its mark goes on with the quote.
function quote(lines, at, depth) {
  const inner = lines.slice(at).map(line => line.replace(QUOTE, ''));
  return [[element('blockquote', blocks(inner, depth + 1))], lines.length];
}

function list(lines, at, depth) {
  const items = [];
  for (const line of lines.slice(at)) {
    const [, indent, mark, words] = LIST.exec(line) ?? [];
    if (mark === undefined) items.at(-1).lines.push(line.trim());
    else if (items.length > 0 && indent.length > items[0].indent && depth < DEPTH) items.at(-1).inner.push(line.slice(items[0].indent));
    else items.push({ indent: indent.length, mark, lines: [words], inner: [] });
  }
  const numbered = /\d/.test(items[0].mark);
  const made = element(numbered ? 'ol' : 'ul', items.map(item => {
    const nested = item.inner.length > 0 ? list(item.inner, 0, depth + 1)[0] : [];
    return element('li', [...inline(item.lines.join('\n').trimEnd()), ...nested]);
  }));
  if (numbered) made.start = parseInt(items[0].mark, 10);
  return [[made], lines.length];
}

function table(lines, at) {
  const rows = lines.slice(at).filter(line => line.trim()).map(line => line.trim().replace(/^\||\|$/g, '').split('|').map(cell => cell.trim()));
  const row = (cells, kind) => element('tr', cells.map(cell => element(kind, inline(cell))));
  const made = element('table', [
    element('thead', [row(rows[0], 'th')]),
    element('tbody', rows.slice(2).map(cells => row(cells, 'td'))),
  ]);
  return [[element('div', [made], 'table')], lines.length];
}

// A search for the next match, from places that only move forward: what was found is kept until a place is behind it.
function forward(text, pattern) {
  let found = -1;
  return from => {
    if (found < from) {
      pattern.lastIndex = from;
      found = pattern.exec(text)?.index ?? text.length;
    }
    return found;
  };
}

const LONGEST_TICKS = 8;

function inline(text) {
  const nodes = [];
  const special = /`|\*|_|\[|https?:\/\//g;
  const search = {
    bracketEnd: forward(text, /[\]\n]/g),
    targetEnd: forward(text, /[\s)]/g),
    addressEnd: forward(text, /[\s<>"'`)\]]/g),
    emphasisEnd: forward(text, /[*_\n]/g),
    missing: new Set(), // closing marks that do not come any more
  };
  let plain = 0;
  for (let found = special.exec(text); found; found = special.exec(text)) {
    const [end, node] = SPANS[found[0]]?.(text, found.index, search) ?? address(text, found.index, found[0], search);
    if (node) {
      if (found.index > plain) nodes.push(text.slice(plain, found.index));
      nodes.push(node);
      plain = end;
    }
    special.lastIndex = end;
  }
  if (plain < text.length) nodes.push(text.slice(plain));
  return nodes;
}

// Each returns where it ends and its node; without a node, where the next one may begin.
const SPANS = {
  '`': literal,
  '*': (text, at, search) => (text[at + 1] === '*' ? strong(text, at, search) : emphasis(text, at, search)),
  '_': emphasis,
  '[': labelled,
};

function literal(text, at, search) {
  let start = at;
  while (text[start] === '`') start += 1;
  const ticks = text.slice(at, start);
  const end = ticks.length > LONGEST_TICKS ? -1 : closing(text, ticks, start + 1, search);
  if (end < 0) return [start];
  const words = text.slice(start, end);
  return [end + ticks.length, element('code', [words.trim() || words])];
}

function strong(text, at, search) {
  const start = at + 2;
  if (!/\S/.test(text[start] ?? ' ')) return [start];
  const end = closing(text, '**', start + 1, search);
  if (end < 0) return [start];
  return [end + 2, element('strong', inline(text.slice(start, end)))];
}

function emphasis(text, at, search) {
  const start = at + 1;
  if (/[*\w]/.test(text[at - 1] ?? ' ') || !/\S/.test(text[start] ?? ' ')) return [start];
  const end = search.emphasisEnd(start);
  if (end === start || end === text.length || text[end] === '\n' || /[*\w]/.test(text[end + 1] ?? ' ')) return [start];
  return [end + 1, element('em', [text.slice(start, end)])];
}

function labelled(text, at, search) {
  const close = search.bracketEnd(at + 1);
  if (close === at + 1 || text[close] !== ']' || !/^\(https?:\/\//.test(text.slice(close + 1, close + 10))) return [at + 1];
  const end = search.targetEnd(close + 2);
  const target = text.slice(close + 2, end);
  if (text[end] !== ')' || !webAddress(target)) return [at + 1];
  return [end + 1, link(target, text.slice(at + 1, close))];
}

function address(text, at, scheme, search) {
  const start = at + scheme.length;
  let end = search.addressEnd(start);
  while (end > start && '.,;:!?'.includes(text[end - 1])) end -= 1;
  const target = text.slice(at, end);
  if (!webAddress(target)) return [Math.max(start, end)];
  return [end, link(target, target)];
}

function closing(text, mark, from, search) {
  if (search.missing.has(mark)) return -1;
  const end = text.indexOf(mark, from);
  if (end < 0) search.missing.add(mark);
  return end;
}

// The address, if it is one of the web.
export function webAddress(text) {
  try {
    const url = new URL(text);
    return /^https?:\/\/[^/]/.test(text) && url.host ? url : null;
  } catch {
    return null;
  }
}

export function link(target, label) {
  const made = element('a', [label]);
  Object.assign(made, { href: target, target: '_blank', rel: 'noreferrer' });
  return made;
}

export function element(name, children = [], className = '') {
  const made = document.createElement(name);
  if (className) made.className = className;
  // One by one: a call takes some hundred thousand arguments at most.
  for (const child of children) made.append(child);
  return made;
}
