// Markdown that grows, as HTML: which blocks are settled, and how the open end looks now. No DOM here.
//
// A block is settled when the next one has begun with a complete line; it is rendered once then. Only the open end is parsed again when
// text comes. A long list, table or code block is an open end too: its first entries are frozen one by one, so that the work stays linear.

import { MarkdownIt } from '../vendor/markdown.js';
import { highlighted } from './highlight.js';

const PART_OF_CODE = 60; // lines that are coloured together, once they are complete never again

const markdown = new MarkdownIt({ html: false, linkify: true, maxNesting: 40 });
const { rules } = markdown.renderer;

// An image would be loaded from wherever a model says, with what it knows in the address: a link is enough.
rules.image = (tokens, at) => {
  const { escapeHtml } = markdown.utils;
  return `<a href="${escapeHtml(tokens[at].attrGet('src') ?? '')}">${escapeHtml(tokens[at].content || 'image')}</a>`;
};
rules.fence = rules.code_block = (tokens, at) => {
  const { escapeHtml } = markdown.utils;
  const language = tokens[at].info.trim().split(/\s+/)[0];
  const parts = partsOf(tokens[at].content).map(part => `<span class="part">${highlighted(language, part) ?? escapeHtml(part)}</span>`);
  return `<pre><code data-language="${escapeHtml(language)}">${parts.join('')}</code></pre>`;
};

markdown.core.ruler.push('page', state => {
  for (const token of state.tokens) {
    // The page has the first two levels.
    if (token.type === 'heading_open' || token.type === 'heading_close') token.tag = `h${Math.min(6, Number(token.tag[1]) + 2)}`;
    // A style in the text would break the page's content security policy.
    const side = /text-align:(\w+)/.exec(token.attrGet('style') ?? '')?.[1];
    if (side) token.attrs = [['class', side]];
  }
});

function partsOf(code) {
  const lines = code.replace(/\n$/, '').split(/(?<=\n)/);
  const parts = [];
  for (let at = 0; at < lines.length; at += PART_OF_CODE) parts.push(lines.slice(at, at + PART_OF_CODE).join(''));
  return parts;
}

export class Blocks {
  constructor() {
    this.text = ''; // all of it
    this.tail = ''; // of the open end; begins with `head`
    this.head = ''; // lines that the open end needs to be parsed alike: the header of a table, the fence of code
    this.frozen = 0; // first entries of the open end that do not change any more
    this.environment = {}; // link definitions so far
  }

  append(delta) {
    this.text += delta;
    this.tail += delta;
  }

  // What to draw: HTML of the blocks that are settled now, HTML of those that are open, and how many entries of the first of them all are
  // on the screen already.
  take() {
    const blocks = this.parse();
    const lines = this.tail.split('\n');
    let count = blocks.length - 1;
    // The line that a block begins with may still become another kind of block, or a part of the one before.
    if (count > 0 && blocks[count].start === lines.length - 1) count -= 1;
    const html = blocks.map(block => markdown.renderer.render(block.tokens, markdown.options, this.environment));
    count = Math.max(count, 0); // a text without any block
    const drawn = { frozen: this.frozen, settled: html.slice(0, count), open: html.slice(count) };
    if (count > 0) {
      this.tail = lines.slice(blocks[count].start).join('\n');
      this.head = '';
      this.frozen = 0;
    } else if (blocks.length === 1) {
      this.freeze(blocks[0], lines);
    }
    return drawn;
  }

  // Settles the first entries of a long open end.
  freeze({ start, tokens }, lines) {
    const kind = ENTRIES[tokens[0].type];
    if (!kind) return;
    const starts = kind.starts(tokens, start);
    const count = starts.length - kind.kept;
    if (count < kind.least) return;
    this.head = lines.slice(start, start + kind.head).map(line => `${line}\n`).join('');
    this.tail = this.head + lines.slice(starts[count]).join('\n');
    this.frozen += count;
  }

  parse() {
    const tokens = markdown.parse(this.tail, this.environment);
    const blocks = [];
    for (const token of tokens) {
      if (token.level === 0 && token.nesting >= 0) blocks.push({ start: token.map[0], tokens: [] });
      blocks.at(-1).tokens.push(token);
    }
    return blocks;
  }
}

// Entries of which nothing changes any more: where each starts, how many lines the others need before them, how many of them may still
// change, and how many are worth the work.
const ENTRIES = {
  bullet_list_open: { starts: listEntries, head: 0, kept: 2, least: 10 },
  ordered_list_open: { starts: listEntries, head: 0, kept: 2, least: 10 },
  table_open: { starts: tableRows, head: 2, kept: 2, least: 10 },
  fence: { starts: codeParts, head: 1, kept: 1, least: 1 },
};

function listEntries(tokens) {
  return tokens.filter(token => token.type === 'list_item_open' && token.level === 1).map(token => token.map[0]);
}

function tableRows(tokens, start) {
  return tokens.filter(token => token.type === 'tr_open' && token.map[0] > start + 1).map(token => token.map[0]);
}

function codeParts([fence], start) {
  return partsOf(fence.content).map((_, n) => start + 1 + n * PART_OF_CODE);
}
