// Markdown on the screen while it grows. What is settled is drawn once; the open end is patched, so that the nodes of what did not change
// stay, and with them a selection, a scrolled table and the reader's place.

import { DOMPurify } from '../vendor/markdown.js';
import { Blocks } from './blocks.js';
import { copyButton, element } from './elements.js';

const SLOW = 5; // milliseconds; an open end that takes longer is drawn less often
const PATIENCE = 6; // times what it took

const SAFE = {
  RETURN_DOM_FRAGMENT: true,
  ALLOWED_TAGS: [
    'p', 'h3', 'h4', 'h5', 'h6', 'ul', 'ol', 'li', 'blockquote', 'pre', 'code', 'span', 'hr', 'br', 'strong', 'em', 's', 'a',
    'table', 'thead', 'tbody', 'tr', 'th', 'td',
  ],
  ALLOWED_ATTR: ['href', 'title', 'class', 'start', 'data-language'],
  ADD_URI_SAFE_ATTR: ['start', 'data-language'], // no addresses
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
};

export class Markdown {
  constructor(root) {
    this.root = root;
    this.clear();
  }

  clear() {
    this.blocks = new Blocks();
    this.open = []; // nodes of the blocks that are not settled
    this.notBefore = 0; // when the open end may be drawn again
    this.stale = false; // text came that is not drawn
    this.root.replaceChildren();
  }

  get text() { return this.blocks.text; }

  append(delta) {
    this.blocks.append(delta);
    this.stale = true;
  }

  // Draws what came; returns whether all of it is on the screen.
  draw() {
    const began = performance.now();
    if (!this.stale) return true;
    if (began < this.notBefore) return false;
    this.stale = false;
    const { settled, open, frozen } = this.blocks.take();
    const made = [...settled, ...open].map(node);
    for (const extra of this.open.splice(made.length)) extra.remove();
    const shown = made.map((block, n) => this.place(block, this.open[n], n === 0 ? frozen : 0));
    this.open = shown.slice(settled.length);
    const took = performance.now() - began;
    // Not where blocks were settled: they are drawn once, and what waits only grows.
    if (took > SLOW && settled.length === 0) this.notBefore = began + took * PATIENCE;
    return true;
  }

  end() {
    this.notBefore = 0;
    this.draw();
  }

  // Shows a block, in place of an old one or behind all others; returns the node that is on the screen.
  place(block, old, frozen) {
    if (!old) return this.root.appendChild(block);
    if (frozen > 0) patchChildren(entries(old), entries(block), frozen);
    else if (old.nodeName === block.nodeName && old.className === block.className) patch(old, block);
    else {
      old.replaceWith(block);
      return block;
    }
    return old;
  }
}

// What holds the entries of a block that may be long.
function entries(block) {
  return block.matches('ul, ol') ? block : block.querySelector('tbody, code');
}

// The element of a block's HTML.
function node(html) {
  const made = DOMPurify.sanitize(html, SAFE).firstElementChild ?? element('p');
  for (const anchor of made.querySelectorAll('a')) Object.assign(anchor, { target: '_blank', rel: 'noreferrer' });
  for (const pre of made.querySelectorAll('pre')) if (pre !== made) replace(pre, codeBlock);
  for (const table of made.querySelectorAll('table')) if (table !== made) replace(table, scrolled);
  if (made.matches('pre')) return codeBlock(made);
  if (made.matches('table')) return scrolled(made);
  return made;
}

function replace(old, wrap) {
  const place = document.createComment('');
  old.replaceWith(place);
  place.replaceWith(wrap(old));
}

function codeBlock(pre) {
  const code = pre.querySelector('code');
  const language = code?.dataset.language ?? '';
  pre.tabIndex = 0; // a wide one is scrolled with the keyboard too
  const bar = element('div', [element('span', [language || 'text']), copyButton('Copy the code', () => code?.textContent ?? '')], 'bar');
  return element('div', [bar, pre], 'code');
}

function scrolled(table) {
  const made = element('div', [table], 'table');
  Object.assign(made, { tabIndex: 0, role: 'region', ariaLabel: 'Table' });
  return made;
}

// Makes `old` look like `made`, and keeps every node that can stay.
function patch(old, made) {
  if (old.nodeType === Node.TEXT_NODE) {
    patchText(old, made.data);
    return;
  }
  // The button of a code block has a life of its own: it says "Copied" for a while.
  if (old.nodeName === 'BUTTON') return;
  for (const { name, value } of made.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
  patchChildren(old, made, 0);
}

// Makes the children of `old` behind the first `kept` ones look like those of `made`.
function patchChildren(old, made, kept) {
  const children = [...made.childNodes].filter(isShown);
  const present = [...old.childNodes].filter(isShown);
  children.forEach((child, n) => {
    const before = present[kept + n];
    if (!before) old.append(child);
    else if (before.nodeName === child.nodeName) patch(before, child);
    else before.replaceWith(child);
  });
  for (const extra of present.slice(kept + children.length)) extra.remove();
}

// Line breaks between the entries of a list or a table are no entries.
function isShown(child) {
  return child.nodeType !== Node.TEXT_NODE || !child.parentNode.matches('ul, ol, table, thead, tbody, tr, blockquote') || child.data.trim() !== '';
}

// Changes what is different, and leaves what a selection may begin or end in.
function patchText(node, text) {
  const old = node.data;
  let same = 0;
  while (same < old.length && old[same] === text[same]) same += 1;
  if (same < old.length || same < text.length) node.replaceData(same, old.length - same, text.slice(same));
}
