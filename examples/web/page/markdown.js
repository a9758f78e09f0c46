// Markdown while it grows. Nodes are made by hand and never from HTML, so nothing a model writes can become part of the page.
//
// What is settled (a block that a blank line has ended) is rendered once; only the last block is rendered again with each delta.

export class Markdown {
  constructor(element) {
    this.element = element;
    this.text = '';
    this.settled = 0;
    this.tail = [];
  }

  append(delta) {
    this.text += delta;
    for (const node of this.tail) node.remove();
    for (let end = blockEnd(this.text, this.settled); end > 0; end = blockEnd(this.text, this.settled)) {
      this.element.append(...block(this.text.slice(this.settled, end)));
      this.settled = end;
    }
    this.tail = block(this.text.slice(this.settled));
    this.element.append(...this.tail);
  }

  replace(text) {
    this.element.replaceChildren();
    Object.assign(this, { text: '', settled: 0, tail: [] });
    this.append(text);
  }
}

// Where the block that begins at `at` ends; 0 while that is not known.
function blockEnd(text, at) {
  let fence = null;
  let said = false;
  for (let from = at; ; ) {
    const newline = text.indexOf('\n', from);
    if (newline < 0) return 0;
    const line = text.slice(from, newline);
    const mark = line.match(/^ {0,3}(`{3,}|~{3,})/)?.[1];
    from = newline + 1;
    if (fence && mark?.startsWith(fence)) return from;
    if (fence) continue;
    if (mark && said) return newline + 1 - line.length - 1;
    if (mark) fence = mark;
    else if (line.trim()) said = true;
    else if (said) return from;
  }
}

const LIST = /^(\s*)([-*+]|\d{1,9}[.)])[ \t]+(.*)/;

const RULES = [
  [/^ {0,3}(`{3,}|~{3,})/, code],
  [/^ {0,3}(#{1,6})\s+\S/, heading],
  [/^ {0,3}([-*_])([ \t]*\1){2,}[ \t]*(\n|$)/, rule],
  [/^ {0,3}>/, quote],
  [LIST, list],
  [/^\s*\|.*\|\s*\n\s*\|[\s:|-]+\|/, table],
];

function block(source) {
  const text = source.replace(/^\n+|\s+$/g, '');
  if (!text) return [];
  const found = RULES.find(([pattern]) => pattern.test(text));
  return found ? found[1](text) : paragraph(text);
}

// A paragraph ends where a line begins something else: models often leave out the blank line before a list.
function paragraph(text) {
  const lines = text.split('\n');
  const end = lines.findIndex((line, n) => n > 0 && RULES.some(([pattern]) => pattern.test(lines.slice(n).join('\n'))));
  const own = end < 0 ? lines : lines.slice(0, end);
  const rest = end < 0 ? [] : block(lines.slice(end).join('\n'));
  return [element('p', inline(own.join('\n'))), ...rest];
}

function code(text) {
  const [first, ...lines] = text.split('\n');
  const fence = first.trim().match(/^[`~]+/)[0];
  const closed = lines.length > 0 && lines.at(-1).trim().startsWith(fence);
  const body = element('code', [(closed ? lines.slice(0, -1) : lines).join('\n')]);
  const language = first.trim().slice(fence.length).trim();
  const pre = element('pre', [body]);
  if (language) pre.dataset.language = language.split(/\s/)[0];
  return [pre];
}

function heading(text) {
  const [first, ...rest] = text.split('\n');
  const [, marks, words] = first.match(/^ {0,3}(#{1,6})\s+(.*?)\s*#*$/);
  return [element(`h${Math.min(marks.length + 2, 6)}`, inline(words)), ...block(rest.join('\n'))];
}

function rule(text) {
  return [element('hr'), ...block(text.split('\n').slice(1).join('\n'))];
}

function quote(text) {
  return [element('blockquote', block(text.replace(/^ {0,3}> ?/gm, '')))];
}

function list(text) {
  const items = [];
  for (const line of text.split('\n')) {
    const [, indent, mark, words] = line.match(LIST) ?? [];
    if (mark === undefined) items.at(-1).lines.push(line.trim());
    else if (items.length > 0 && indent.length > items[0].indent) items.at(-1).inner.push(line.slice(items[0].indent));
    else items.push({ indent: indent.length, mark, lines: [words], inner: [] });
  }
  const numbered = /\d/.test(items[0].mark);
  const made = element(numbered ? 'ol' : 'ul', items.map(item => element('li', [
    ...inline(item.lines.join('\n')),
    ...(item.inner.length > 0 ? list(item.inner.join('\n').trimStart()) : []),
  ])));
  if (numbered) made.start = parseInt(items[0].mark, 10);
  return [made];
}

function table(text) {
  const rows = text.split('\n').map(line => line.trim().replace(/^\||\|$/g, '').split('|').map(cell => cell.trim()));
  const row = (cells, kind) => element('tr', cells.map(cell => element(kind, inline(cell))));
  const made = element('table', [
    element('thead', [row(rows[0], 'th')]),
    element('tbody', rows.slice(2).map(cells => row(cells, 'td'))),
  ]);
  return [element('div', [made], 'table')];
}

const SPANS = /(`+)(.+?)\1|\*\*(?=\S)(.+?)\*\*|(?<![*\w])[*_](?=\S)([^*_\n]+?)[*_](?![*\w])|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>"'`)\]]+[^\s<>"'`)\].,;:!?])/s;

function inline(text) {
  const nodes = [];
  for (let rest = text; rest; ) {
    const found = rest.match(SPANS);
    if (!found) return [...nodes, rest];
    const [whole, , literal, strong, emphasis, label, target, address] = found;
    if (found.index > 0) nodes.push(rest.slice(0, found.index));
    if (literal !== undefined) nodes.push(element('code', [literal.trim() || literal]));
    else if (strong !== undefined) nodes.push(element('strong', inline(strong)));
    else if (emphasis !== undefined) nodes.push(element('em', inline(emphasis)));
    else nodes.push(link(target ?? address, label ?? address));
    rest = rest.slice(found.index + whole.length);
  }
  return nodes;
}

export function link(target, label) {
  const made = element('a', [label]);
  Object.assign(made, { href: target, target: '_blank', rel: 'noreferrer' });
  return made;
}

export function element(name, children = [], className = '') {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}
