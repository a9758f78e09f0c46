// A table of any length: only the rows in sight are elements. The table is one stop of the Tab key;
// arrows move in it, and a screen reader is told which row is the active one.

class Rows {
  // titles: of the columns, [text, class]; choose, open: what a row does when moved to, or opened.
  constructor(element, titles, drawRow, choose, open) {
    Object.assign(this, { drawRow, choose, open, size: 0, active: 0 });
    this.titles = make(
      "div",
      { class: "row titles", role: "row" },
      ...titles.map(([text, className]) =>
        make("span", { role: "columnheader", class: className }, text),
      ),
    );
    this.body = make("div", { class: "body", role: "rowgroup" });
    this.element = element;
    element.replaceChildren(this.titles, this.body);
    filled(element, { role: "grid", tabindex: 0 }, []);
    element.onscroll = () => this.draw();
    element.onkeydown = event => this.key(event);
    element.onclick = event => this.click(event);
    if (element.observer) element.observer.disconnect(); // of the response that was shown before
    element.observer = new ResizeObserver(() => this.measure());
    element.observer.observe(element);
  }

  // Rows are as high as CSS says, which differs on a phone and with larger letters.
  measure() {
    const probe = make("div", { class: "row" });
    this.body.append(probe);
    this.height = probe.offsetHeight || 28;
    this.show(this.size, this.active);
  }

  // Draws everything anew: there are other rows, or they have other places.
  show(size, active) {
    this.size = size;
    this.first = null;
    this.body.replaceChildren();
    this.body.style.height = `${size * this.height}px`;
    this.room = this.element.clientHeight - this.titles.offsetHeight;
    this.element.setAttribute("aria-rowcount", size + 1);
    this.moveTo(active);
  }

  moveTo(active) {
    this.active = Math.max(0, Math.min(active, this.size - 1));
    const { element, height, room } = this;
    const top = this.active * height;
    if (top < element.scrollTop) element.scrollTop = top;
    if (top + height > element.scrollTop + room) element.scrollTop = top + height - room;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.element.scrollTop / this.height) - 2);
    const last = Math.min(this.size, first + Math.ceil(this.room / this.height) + 4);
    if (first !== this.first || last !== this.last) {
      const rows = [];
      for (let index = first; index < last; index++) rows.push(this.row(index));
      this.body.replaceChildren(...rows);
      Object.assign(this, { first, last });
    }
    for (const row of this.body.children) this.mark(row);
    this.element.setAttribute("aria-activedescendant", this.rowId(this.active));
  }

  mark(row) {
    const isActive = row.id === this.rowId(this.active);
    if (isActive === row.classList.contains("chosen")) return;
    row.classList.toggle("chosen", isActive);
    row.setAttribute("aria-selected", isActive);
  }

  rowId(index) {
    return `${this.element.id}-${index}`;
  }

  row(index) {
    const row = make(
      "div",
      {
        class: "row",
        role: "row",
        id: this.rowId(index),
        "aria-rowindex": index + 2,
        "aria-selected": "false",
      },
      ...this.drawRow(index).map(([content, className]) =>
        make("span", { role: "gridcell", class: className }, content),
      ),
    );
    row.style.top = `${index * this.height}px`;
    return row;
  }

  key(event) {
    if (!this.size) return; // the filter may leave no row
    const page = Math.floor(this.element.clientHeight / this.height) - 1;
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page };
    if (event.key === "Enter") this.open(this.active);
    else if (event.key in steps)
      this.choose(Math.max(0, Math.min(this.active + steps[event.key], this.size - 1)));
    else return;
    event.preventDefault();
  }

  click(event) {
    const row = event.target.closest("[aria-rowindex]");
    if (!row) return;
    const index = row.getAttribute("aria-rowindex") - 2;
    this.element.focus({ preventScroll: true }); // a row is drawn anew, and would lose the focus
    this.choose(index);
    if (event.target.closest(".fold")) this.open(index);
  }
}
