// One frame: its bytes, its JSON, its events.

class FrameView {
  constructor(model) {
    this.model = model;
    this.split = "recorded";
    this.views = {
      Bytes: () => this.bytes(),
      Hex: () => this.hex(),
      JSON: () => this.json(),
      Events: () => this.events(),
    };
    this.chosen = model.inspection.source.frames === "aws" ? "Hex" : "Bytes";
    if (!model.body) this.chosen = "Events";
    const names = Object.keys(this.views);
    this.tabs = names.map(name =>
      make(
        "button",
        { type: "button", role: "tab", "aria-controls": "frame", click: () => this.choose(name) },
        name,
      ),
    );
    at("tabs").replaceChildren(...this.tabs);
    at("tabs").onkeydown = event => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.stopPropagation(); // here the arrows choose a tab, not a frame
      const next = (names.indexOf(this.chosen) + step + names.length) % names.length;
      this.choose(names[next]);
      this.tabs[next].focus();
    };
  }

  choose(name) {
    this.chosen = name;
    this.move(this.frame);
  }

  move(frame) {
    this.frame = frame;
    for (const tab of this.tabs) {
      const isChosen = tab.textContent === this.chosen;
      tab.setAttribute("aria-selected", isChosen);
      tab.tabIndex = isChosen ? 0 : -1;
    }
    const { model } = this;
    const [start, end] = [model.frameStarts[frame], model.frameStarts[frame + 1]];
    at("frame-title").replaceChildren(
      `Frame ${frame}: bytes ${count(start)} to ${count(end)}, `,
      quoted(model.kind(frame) || ""),
    );
    at("frame").replaceChildren(...this.views[this.chosen]());
  }

  bytes() {
    return this.ofBytes(bytes => rawView(bytes, bordersIn(this.model, this.frame, this.split)));
  }

  hex() {
    return this.ofBytes(bytes =>
      hexView(
        bytes,
        bordersIn(this.model, this.frame, this.split),
        this.model.frameStarts[this.frame],
      ),
    );
  }

  json() {
    const read = payload => [
      make(
        "pre",
        { class: "mono" },
        isJson(payload) ? shownJson(payload, RAW_BYTES) : shown(payload.slice(0, RAW_BYTES)),
      ),
    ];
    return this.ofBytes(bytes => read(payloadOf(bytes, this.model.inspection.source.frames)));
  }

  ofBytes(view) {
    const bytes = this.model.bytesOf(this.frame);
    if (bytes === null)
      return [make("p", { class: "soft" }, "The bytes are not in a redacted inspection.")];
    return bytes.length
      ? view(bytes)
      : [make("p", { class: "soft" }, "No bytes: the input ended.")];
  }

  events() {
    const events = this.model.eventsOf(this.frame);
    if (!events.length) {
      const why = this.model.isUnread(this.frame) ? "It was not read." : "It became no event.";
      return [make("p", { class: "soft" }, why)];
    }
    return events.map(event =>
      make("pre", { class: "mono" }, shown(JSON.stringify(event, null, 2).slice(0, RAW_BYTES))),
    );
  }
}

function isJson(text) {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // `[DONE]`, or a frame that the end of input cut
  }
}

// The JSON in a frame: behind `data:` in server-sent events, between headers and checksum in AWS
// messages, else all of it.
function payloadOf(bytes, framing) {
  const lenient = new TextDecoder();
  if (framing === "aws" && bytes.length > 16) {
    const headers = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4);
    return lenient.decode(bytes.subarray(12 + headers, bytes.length - 4));
  }
  const text = lenient.decode(bytes);
  if (framing !== "sse") return text;
  return text
    .split(/\r\n|\r|\n/)
    .filter(line => line.startsWith("data:"))
    .map(line => line.slice(5))
    .join("\n")
    .trim();
}
