// What the response is at one frame: each item with its texts, and the usage.

const ITEMS_SHOWN = 40; // the newest; a response may have 10,000
const TEXT_SHOWN = 2000; // characters at the end of a text
const TREE_CHARACTERS = 50000;

class State {
  constructor(model, list) {
    this.model = model;
    this.list = list;
    this.views = new Map();
    this.firstFrames = model.inspection.items.map(item => item.first_frame);
    this.range = "";
  }

  move(frame) {
    const { items } = this.model.inspection;
    const end = lastAtMost(this.firstFrames, frame) + 1;
    const start = Math.max(0, end - ITEMS_SHOWN);
    if (`${start} ${end}` !== this.range) this.choose(start, end);
    for (const item of items.slice(start, end)) this.view(item).move(frame);
    at("sum").replaceChildren(quoted(this.sum(frame, start)));
  }

  // The items that are on the page now.
  choose(start, end) {
    this.range = `${start} ${end}`;
    const shownItems = this.model.inspection.items.slice(start, end);
    this.list.replaceChildren(...shownItems.map(item => this.view(item).element));
  }

  view(item) {
    if (!this.views.has(item.index)) this.views.set(item.index, new ItemView(this.model, item));
    return this.views.get(item.index);
  }

  sum(frame, hidden) {
    const parts = [];
    if (hidden) parts.push(`${count(hidden)} earlier items`);
    const usage = this.model.usageAt(frame);
    if (usage) parts.push(`tokens ${tokensText(usage)}`, cacheText(usage));
    const { terminal, inspection } = this.model;
    if (terminal && frame >= terminal.frame) parts.push(inspection.outcome.text);
    return parts.filter(Boolean).join(" · ") || "nothing yet";
  }
}

class ItemView {
  constructor(model, item) {
    this.model = model;
    this.item = item;
    this.status = make("span", { class: "soft" });
    this.element = make(
      "article",
      { class: "box" },
      make(
        "h3",
        {},
        swatch(colourOf(item.type)),
        quoted(`${item.index} ${item.label} `),
        this.status,
      ),
    );
    const texts = model.growing.get(item.index) || new Map();
    this.texts = Array.from(texts.values(), growing => new TextView(model, growing));
    this.element.append(...this.texts.map(text => text.element));
    this.final = make("pre", { class: "mono" });
    if (!this.texts.length) this.element.append(this.final);
  }

  move(frame) {
    const isOpen = frame < this.item.last_frame;
    let status = "complete";
    if (isOpen) status = "open";
    else if (this.item.truncated) status = "truncated";
    else if (this.item.status === "incomplete") status = "incomplete";
    this.status.textContent = status;
    this.status.className = status === "truncated" || status === "incomplete" ? "error" : "soft";
    for (const text of this.texts) text.move(frame, isOpen);
    const final = this.model.finals.get(this.item.index);
    if (!this.texts.length)
      this.final.textContent =
        isOpen || !final ? "" : shown(JSON.stringify(final, null, 1)).slice(0, TEXT_SHOWN);
  }
}

class TextView {
  constructor(model, growing) {
    this.model = model;
    this.growing = growing;
    this.label = make("small");
    this.text = make("bdi", { dir: "auto" });
    this.caret = caret();
    this.tree = make("div");
    this.element = make(
      "div",
      {},
      this.label,
      make("div", { class: "tail" }, make("pre", {}, this.text, this.caret)),
      this.tree,
    );
    this.size = -1;
  }

  move(frame, isOpen) {
    const size = this.growing.sizeAt(frame);
    this.element.hidden = size === 0;
    this.caret.hidden = !isOpen;
    if (size === this.size) return;
    this.size = size;
    this.label.textContent = `${this.growing.label}, ${count(size, "character")}`;
    if (this.model.inspection.redacted) return;
    const start = Math.max(0, size - TEXT_SHOWN);
    const cut = start ? `… ${count(start)} characters before …\n` : "";
    const text = this.growing.text();
    this.text.textContent = cut + shown(text.slice(start, size));
    this.showTree(text.slice(0, Math.min(size, TREE_CHARACTERS + 1)));
  }

  showTree(text) {
    if (this.growing.label !== "arguments" || text.length > TREE_CHARACTERS) return;
    const [root] = partialJson(text);
    const entries = root && root[1].entries;
    this.tree.replaceChildren(...(entries ? [tree(entries)] : []));
  }
}
