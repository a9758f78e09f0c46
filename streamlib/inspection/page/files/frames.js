// The table of frames. Adjacent frames that append to the same text are one row until it is opened.

const ROW_CHARACTERS = 160; // of the text in a row

class Frames {
  constructor(model, element) {
    this.model = model;
    this.folds = foldFrames(model);
    this.opened = new Set(); // first frames of the rows that are open
    this.filter = "";
    this.texts = new Map(); // first frame and number of frames of a row -> its text
    element.classList.toggle("untimed", !model.isTimed);
    this.rows = new Rows(
      element,
      [["byte", "number"], ["seconds", "number time"], ["frame"], ["events", "last"]],
      index => this.cells(this.list[index]),
      index => this.choose(index),
      index => this.toggle(this.list[index]),
    );
    this.arrange();
  }

  // The rows that there are now: {first, size, isInner}.
  arrange() {
    const list = [];
    for (const fold of this.folds) {
      if (this.filter) list.push(...this.matching(fold));
      else list.push(fold);
      if (!this.filter && this.opened.has(fold.first)) list.push(...single(fold));
    }
    this.list = list;
    this.starts = list.map(row => row.first);
    this.rows.size = list.length;
    this.rows.measure();
  }

  matching(fold) {
    return single(fold).filter(row => {
      const text = `${this.model.kind(row.first)} ${this.text(row)}`;
      return text.toLowerCase().includes(this.filter);
    });
  }

  find(text) {
    this.filter = text.toLowerCase();
    this.arrange();
    at("matches").textContent =
      text && `${count(this.list.length)} of ${count(this.model.frameCount, "frame")}`;
    if (!text || !this.list.length) return;
    play.stop();
    position.set(this.list[0].first);
  }

  toggle({ first, size }) {
    if (size === 1) return;
    if (!this.opened.delete(first)) this.opened.add(first);
    this.arrange();
  }

  choose(index) {
    position.step(this.list[index].first - position.frame);
    // An open row and the first row in it are of the same frame.
    this.rows.moveTo(index);
  }

  move(frame) {
    this.rows.moveTo(lastAtMost(this.starts, frame));
  }

  cells(row) {
    const { model } = this;
    const kind = make("span", {});
    if (row.size > 1) {
      const isOpen = this.opened.has(row.first);
      kind.append(
        make(
          "button",
          { type: "button", class: "fold", tabindex: -1, "aria-expanded": String(isOpen) },
          `${isOpen ? "−" : "+"}${count(row.size)}`,
        ),
      );
    }
    kind.append(quoted(oneLine(model.kind(row.first), 60)));
    return [
      [count(model.frameStarts[row.first]), "number"],
      [clockTime(model.times[row.first]), "number time"],
      [kind, row.isInner ? "inner" : ""],
      [quoted(this.text(row), model.isUnread(row.first) ? "soft" : undefined), "last"],
    ];
  }

  text(row) {
    const key = `${row.first} ${row.size}`;
    if (!this.texts.has(key)) this.texts.set(key, rowText(this.model, row));
    return this.texts.get(key);
  }
}

function single({ first, size }) {
  return Array.from({ length: size }, (_, index) => ({
    first: first + index,
    size: 1,
    isInner: size > 1,
  }));
}

// What frames append to or report. Those with the same text may share a row; null: none may.
function foldKey(events) {
  const keys = [];
  for (const event of events) {
    const { type, index, content_index, summary_index } = event;
    if (CHANNELS[type] || type === "media_delta")
      keys.push([type, index, content_index, summary_index]);
    else if (type === "token_count") keys.push([type]);
    else if (type === "passthrough") keys.push([type, event.event]);
    else if (type === "notice") keys.push([type, event.code, event.detail, index]);
    else return null;
  }
  return JSON.stringify(keys);
}

function foldFrames(model) {
  const folds = [];
  let last = null;
  for (let frame = 0; frame < model.frameCount; frame++) {
    const events = model.eventsOf(frame);
    const key = foldKey(events);
    const isSame =
      last &&
      model.kind(frame) === model.kind(last.first) &&
      model.isUnread(frame) === model.isUnread(last.first) &&
      (!events.length || (key !== null && key === last.key));
    if (isSame) last.size += 1;
    else folds.push((last = { first: frame, size: 1, key }));
  }
  return folds;
}

function rowText(model, { first, size }) {
  const events = model.eventsOf(first);
  if (model.isUnread(first)) return `not read: ${unreadText(model, first)}`;
  if (size === 1) return events.map(eventText).join(" · ") || "–";
  let text = "";
  for (let frame = first; frame < first + size && text.length < ROW_CHARACTERS; frame++) {
    for (const event of model.eventsOf(frame)) text += event.delta || "";
  }
  return text
    ? `${events[0].type} ${events[0].index || 0} ${oneLine(text, ROW_CHARACTERS)}`
    : events.map(eventText).join(" · ");
}

function unreadText(model, frame) {
  const bytes = model.bytesOf(frame);
  const { frames } = model.inspection.source;
  return bytes ? oneLine(payloadOf(bytes, frames), ROW_CHARACTERS) : "after the end";
}

function eventText(event) {
  const { type, item, error, index = 0 } = event;
  if (event.delta !== undefined) return `${type} ${index} ${oneLine(event.delta, ROW_CHARACTERS)}`;
  if (item) return `${type} ${index} ${item.type} ${item.name || ""}`;
  const detail =
    event.response_id ||
    event.code ||
    event.event ||
    event.stop_reason ||
    (error && `${error.kind} ${error.message}`) ||
    "";
  return oneLine(`${type} ${detail} ${event.detail || ""}`.trim(), ROW_CHARACTERS);
}
