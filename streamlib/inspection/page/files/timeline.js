// The timeline: every lane on one axis, of time or, where no times were recorded, of bytes.

const ITEM_LANES = 10; // further items share one lane
const SPEED_HEIGHT = 52;
const LANE = 18;

class Timeline {
  constructor(model, figure) {
    this.model = model;
    this.figure = figure;
    this.frame = 0;
    this.draw();
  }

  // After the window changed: the letters keep their size, so the drawing is made anew.
  fit() {
    if (this.figure.clientWidth !== this.fitted) this.draw();
  }

  draw() {
    const { model } = this;
    this.fitted = this.figure.clientWidth;
    this.width = Math.max(280, this.fitted);
    this.gutter = this.width < 640 ? 92 : 150;
    this.top = 0;
    this.svg = makeSvg("svg", { role: "img", "aria-label": this.summary(), viewBox: "0 0 1 1" });
    this.drawSpeed();
    this.drawTicks("chunks", this.chunkPositions());
    this.drawTicks(
      "frames",
      Array.from({ length: model.frameCount }, (_, frame) => model.axisOf(frame)),
    );
    this.drawItems();
    this.drawSilences();
    this.drawAxis();
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.top}`);
    this.cursor = makeSvg("line", { class: "cursor", y1: 0, y2: this.top - LANE });
    this.svg.append(this.cursor);
    this.svg.addEventListener("pointerdown", event => this.point(event));
    this.svg.addEventListener("pointermove", event => {
      if (event.buttons & 1) this.point(event);
    });
    this.figure.replaceChildren(
      this.svg,
      legend(model),
      make("p", { class: "soft" }, this.summary()),
    );
    this.move(this.frame);
  }

  x(value) {
    return this.gutter + (value / this.model.axisEnd) * (this.width - this.gutter - 8);
  }

  move(frame) {
    this.frame = frame;
    this.cursor.setAttribute("transform", `translate(${this.x(this.model.axisOf(frame) || 0)},0)`);
  }

  point(event) {
    const { left, width } = this.svg.getBoundingClientRect();
    const x = ((event.clientX - left) / width) * this.width;
    const share = (x - this.gutter) / (this.width - this.gutter - 8);
    play.stop();
    position.set(this.model.frameNear(Math.max(0, Math.min(1, share)) * this.model.axisEnd));
  }

  label(text, title) {
    const y = this.top + 13;
    const label = makeSvg(
      "text",
      { x: 0, y, class: "soft" },
      oneLine(text, this.gutter < 100 ? 13 : 21),
    );
    label.append(makeSvg("title", {}, shown(title || text)));
    this.svg.append(label);
  }

  drawSpeed() {
    const { model } = this;
    const bins = Math.max(10, Math.floor((this.width - this.gutter) / 5));
    const binWidth = model.axisEnd / bins;
    const sums = new Float64Array(bins);
    for (let frame = 0; frame < model.frameCount; frame++) {
      sums[Math.min(bins - 1, Math.floor(model.axisOf(frame) / binWidth))] +=
        model.characters[frame];
    }
    const most = Math.max(1, ...sums);
    let path = "";
    sums.forEach((sum, bin) => {
      const height = (sum / most) * SPEED_HEIGHT;
      const [left, right] = [this.x(bin * binWidth), this.x((bin + 1) * binWidth)];
      if (!height) return;
      path += `M${left.toFixed(1)} ${SPEED_HEIGHT}v${-height.toFixed(1)}`;
      path += `H${(right - 1).toFixed(1)}V${SPEED_HEIGHT}z`;
    });
    this.label(model.isTimed ? "characters/s" : "characters");
    const peak = model.isTimed ? most / binWidth : most;
    this.top += 15;
    this.label(`at most ${count(Math.round(peak))}`);
    this.top = SPEED_HEIGHT + 6;
    this.svg.append(makeSvg("path", { class: "speed", d: path }));
  }

  chunkPositions() {
    const { model } = this;
    const { at: times } = model.inspection.chunks;
    return model.isTimed ? times : Array.from(model.chunkStarts);
  }

  // One path for all ticks, one tick a pixel: 20,000 elements would take seconds.
  drawTicks(name, values) {
    const pixels = new Set(Array.from(values, value => Math.round(this.x(value))));
    let path = "";
    for (const pixel of pixels) path += `M${pixel} ${this.top + 3}v12`;
    this.label(name);
    this.svg.append(makeSvg("path", { class: "ticks", d: path }));
    this.top += LANE;
  }

  drawItems() {
    const { items } = this.model.inspection;
    for (const item of items.slice(0, ITEM_LANES)) {
      // of a call: its tool
      this.label(item.label.replace(`${item.type} `, ""), `item ${item.index}: ${item.label}`);
      this.drawBar(item);
      this.top += LANE;
    }
    if (items.length > ITEM_LANES) this.drawCrowd(items.slice(ITEM_LANES));
  }

  // Many items in one lane: thousands of bars would be slow, and most of them the same pixels.
  drawCrowd(items) {
    this.label(`${count(items.length)} more items`);
    const spans = new Map(); // colour -> what was drawn in it
    for (const item of items) {
      const colour = item.truncated ? "bad" : colourOf(item.type);
      if (!spans.has(colour)) spans.set(colour, new Set());
      const [start, end] = [item.first_frame, item.last_frame].map(frame =>
        Math.round(this.x(this.model.axisOf(frame))),
      );
      spans.get(colour).add(`M${start} ${this.top + 9}H${Math.max(end, start + 2)}`);
    }
    for (const [colour, paths] of spans)
      this.svg.append(makeSvg("path", { class: `${colour} lines crowd`, d: [...paths].join("") }));
    this.top += LANE;
  }

  drawBar(item) {
    const { model } = this;
    const start = this.x(model.axisOf(item.first_frame));
    const width = Math.max(4, this.x(model.axisOf(item.last_frame)) - start);
    const colour = colourOf(item.type);
    const shape = {
      x: start.toFixed(1),
      y: this.top + 3,
      width: width.toFixed(1),
      height: 12,
      rx: 2,
    };
    const kind = item.truncated ? "bar truncated" : "bar";
    const bar = makeSvg("rect", { ...shape, class: `${colour} ${kind}`, fill: `url(#${colour})` });
    bar.append(makeSvg("title", {}, shown(`${item.label}${item.truncated ? ", truncated" : ""}`)));
    this.svg.append(makeSvg("rect", { ...shape, class: "backing" }), bar);
    if (item.truncated) this.note(start, start + width, "truncated");
  }

  // A word behind a bar, or before it where there is no room.
  note(start, end, text) {
    const isBehind = end + 70 < this.width;
    // Without room the bar alone says it, by its look and its title.
    if (!isBehind && start - 70 < this.gutter) return;
    const place = {
      x: isBehind ? end + 5 : start - 5,
      y: this.top + 13,
      "text-anchor": isBehind ? "start" : "end",
    };
    this.svg.append(makeSvg("text", { ...place, class: "note" }, text));
  }

  drawSilences() {
    const { silences } = this.model.inspection;
    if (!this.model.isTimed || !silences) return;
    this.drawLane("no bytes", silences.no_bytes, { class: "bar none" });
    this.drawLane("bytes, no frame", silences.no_frame, {
      class: "bar silence",
      fill: "url(#no-frame)",
    });
  }

  drawLane(name, spans, look) {
    this.label(name);
    if (!spans.length)
      this.svg.append(
        makeSvg("text", { x: this.gutter + 4, y: this.top + 13, class: "soft" }, "none"),
      );
    for (const { start, end } of spans) {
      const left = this.x(start);
      const width = Math.max(3, this.x(end) - left);
      const bar = makeSvg("rect", {
        ...look,
        x: left.toFixed(1),
        y: this.top + 3,
        width: width.toFixed(1),
        height: 12,
      });
      bar.append(makeSvg("title", {}, `${name}: ${seconds(end - start)}`));
      this.svg.append(bar);
      // Of many, the titles alone: the texts would cover other bars.
      if (spans.length <= 3) this.note(left, left + width, seconds(end - start));
    }
    this.top += LANE;
  }

  drawAxis() {
    const end = this.model.axisEnd;
    // A nice step is at most 2.5 times as long.
    const step = niceStep(end / Math.max(2.5, Math.floor((this.width - this.gutter) / 110)));
    let path = "";
    for (let value = 0; value <= end; value += step) {
      const x = this.x(value);
      path += `M${x.toFixed(1)} 0V${this.top}`;
      const text = this.model.isTimed ? `${+value.toFixed(6)} s` : count(Math.round(value));
      const anchor = x + 30 > this.width ? "end" : "middle";
      this.svg.append(
        makeSvg(
          "text",
          { x: x.toFixed(1), y: this.top + 14, "text-anchor": anchor, class: "soft" },
          text,
        ),
      );
    }
    this.label(this.model.isTimed ? "seconds" : "bytes");
    this.svg.prepend(makeSvg("path", { class: "axis", d: path }));
    this.top += LANE;
  }

  // The timeline in words, for those who do not see it.
  summary() {
    const { facts, items } = this.model.inspection;
    const axis = this.model.isTimed
      ? seconds(facts.duration)
      : `${count(facts.bytes, "byte")}, times were not recorded`;
    const truncated = items.filter(item => item.truncated).length;
    const parts = [
      axis,
      count(facts.chunks, "chunk"),
      count(facts.frames, "frame"),
      count(items.length, "item"),
    ];
    if (truncated) parts.push(`${count(truncated)} truncated`);
    return parts.join(" · ");
  }
}

function legend(model) {
  const names = {
    message: "message",
    reasoning: "reasoning",
    call: "call",
    tool: "the provider's tool",
    other: "other",
  };
  const used = new Set(model.inspection.items.map(item => colourOf(item.type)));
  const caption = make("figcaption", { class: "soft" });
  for (const colour of used) caption.append(make("span", {}, swatch(colour), names[colour]));
  return caption;
}

function swatch(colour) {
  const bar = makeSvg("rect", {
    class: `${colour} bar`,
    fill: `url(#${colour})`,
    x: 1,
    y: 1,
    width: 26,
    height: 11,
    rx: 2,
  });
  return makeSvg("svg", { viewBox: "0 0 28 13", "aria-hidden": "true" }, bar);
}

// 1, 2 or 5 times a power of ten, at least as large as asked.
function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= least);
}
