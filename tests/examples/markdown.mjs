// Runs the page's Markdown without a browser: `node markdown.mjs MODULE` reads a JSON list of texts, each a list of deltas, from standard
// input and prints for each its HTML and the milliseconds of CPU that it took.

class Node {
  constructor(text) { this.text = text; this.parent = null; }
  remove() { this.parent?.children.delete(this); this.parent = null; }
  get html() { return this.text; }
}

class Element extends Node {
  constructor(name) {
    super('');
    this.tagName = name.toUpperCase();
    this.children = new Set();
    this.dataset = {};
    this.last = null;
  }
  append(...nodes) {
    for (const given of nodes) {
      const node = typeof given === 'string' ? new Node(given) : given;
      node.remove();
      node.parent = this;
      this.children.add(node);
      this.last = node;
    }
  }
  replaceChildren() { this.children.clear(); }
  get lastElementChild() { return this.last?.parent === this && this.last.tagName ? this.last : null; }
  get html() {
    const name = this.tagName.toLowerCase();
    const href = this.href ? ` href=${this.href}` : '';
    return `<${name}${href}>${[...this.children].map(node => node.html).join('')}</${name}>`;
  }
}

globalThis.document = { createElement: name => new Element(name) };

const { Markdown, webAddress } = await import(process.argv[2]);

let input = '';
for await (const chunk of process.stdin) input += chunk;
const { texts, addresses } = JSON.parse(input);
const results = texts.map(({ delta, count, pieces }) => {
  const root = new Element('main');
  const markdown = new Markdown(root);
  const start = process.cpuUsage();
  for (let n = 0; n < (count ?? 1); n += 1) for (const piece of pieces ?? [delta]) markdown.append(piece);
  markdown.end();
  const { user, system } = process.cpuUsage(start);
  const html = [...root.children].map(node => node.html).join('');
  return { html: html.length < 10_000 ? html : `${html.length} characters`, text: markdown.text.length, cpu: (user + system) / 1000 };
});
console.log(JSON.stringify({ results, addresses: addresses.map(address => webAddress(address)?.host ?? null) }));
