// One inspection, indexed: where frames and chunks start, when each frame was finished, and what
// had been appended to each item by then. Every step of the scrubber only looks up.

// What a delta appends to: its label, and the field that tells one such text from another.
const CHANNELS = {
  output_text_delta: ["text", "content_index"],
  reasoning_content_delta: ["reasoning", "content_index"],
  reasoning_summary_delta: ["summary", "summary_index"],
  refusal_delta: ["refusal", "content_index"],
  function_call_arguments_delta: ["arguments", "none"],
};

// One text that grows.
class Growing {
  constructor(label) {
    this.label = label;
    this.fragments = [];
    this.frames = []; // the frame of each fragment
    this.ends = []; // characters after each fragment
    this.size = 0;
    this.joined = null;
  }

  add(fragment, frame) {
    this.fragments.push(fragment);
    this.size += fragment.length;
    this.frames.push(frame);
    this.ends.push(this.size);
  }

  sizeAt(frame) {
    const index = lastAtMost(this.frames, frame);
    return index < 0 ? 0 : this.ends[index];
  }

  text() {
    if (this.joined === null) this.joined = this.fragments.join("");
    return this.joined;
  }
}

class Model {
  constructor(inspection, body) {
    this.inspection = inspection;
    this.body = body; // null: redacted
    const { chunks, frames, source } = inspection;
    this.frameCount = frames.bytes.length;
    this.lastFrame = Math.max(0, this.frameCount - 1);
    this.isTimed = source.recorded && chunks.at.length > 0;
    this.chunkStarts = starts(chunks.bytes);
    this.frameStarts = starts(frames.bytes);
    this.eventStarts = starts(frames.events);
    this.times = frames.bytes.map((_, frame) => this.finishedAt(frame));
    this.characters = new Float64Array(this.frameCount); // appended by each frame
    this.growing = new Map(); // index of an item -> its texts, by key
    this.usage = { frames: [], values: [] };
    this.finals = new Map(); // index of an item -> the item as it was closed
    this.terminal = null; // the event, and its frame
    for (let frame = 0; frame < this.frameCount; frame++) {
      for (const event of this.eventsOf(frame)) this.fold(event, frame);
    }
  }

  finishedAt(frame) {
    const { at } = this.inspection.chunks;
    if (!this.isTimed) return null;
    const lastByte = Math.max(0, this.frameStarts[frame + 1] - 1);
    // The end of input is no byte: it belongs to the last chunk.
    return at[Math.min(lastAtMost(this.chunkStarts, lastByte), at.length - 1)];
  }

  // Frames after the end of the response are shown, and were not read.
  isUnread(frame) {
    return this.terminal !== null && frame > this.terminal.frame;
  }

  kind(frame) {
    const { kinds, kind } = this.inspection.frames;
    return kinds[kind[frame]];
  }

  eventsOf(frame) {
    return this.inspection.events.slice(this.eventStarts[frame], this.eventStarts[frame + 1]);
  }

  bytesOf(frame) {
    return this.body && this.body.subarray(this.frameStarts[frame], this.frameStarts[frame + 1]);
  }

  frameOfEvent(number) {
    return Math.min(lastAtMost(this.eventStarts, number), this.lastFrame);
  }

  fold(event, frame) {
    const channel = CHANNELS[event.type];
    if (channel) {
      this.append(event, channel, frame);
    } else if (event.type === "output_item_done") {
      this.finals.set(event.index || 0, event.item);
    } else if (event.type === "token_count") {
      this.count(event.usage, frame);
    } else if (event.type === "completed" || event.type === "failed") {
      this.terminal = { event, frame };
      if (event.usage) this.count(event.usage, frame);
    }
  }

  append(event, [label, field], frame) {
    const index = event.index || 0;
    if (!this.growing.has(index)) this.growing.set(index, new Map());
    const texts = this.growing.get(index);
    const number = event[field] || 0;
    const key = `${event.type} ${number}`;
    if (!texts.has(key)) texts.set(key, new Growing(number ? `${label} ${number + 1}` : label));
    texts.get(key).add(event.delta || "", frame);
    this.characters[frame] += (event.delta || "").length;
  }

  count(usage, frame) {
    this.usage.frames.push(frame);
    this.usage.values.push(usage);
  }

  usageAt(frame) {
    const index = lastAtMost(this.usage.frames, frame);
    return index < 0 ? null : this.usage.values[index];
  }

  // Where a frame is on the axis: the time it was finished, else its last byte.
  axisOf(frame) {
    return this.isTimed ? this.times[frame] : this.frameStarts[frame + 1];
  }

  get axisEnd() {
    const { chunks } = this.inspection;
    if (!this.isTimed) return this.chunkStarts[this.chunkStarts.length - 1] || 1;
    return chunks.at[chunks.at.length - 1] || 0.001;
  }

  frameNear(value) {
    let low = 0;
    let high = this.lastFrame;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.axisOf(middle) < value) low = middle + 1;
      else high = middle;
    }
    const before = Math.max(0, low - 1);
    return value - this.axisOf(before) < this.axisOf(low) - value ? before : low;
  }
}

// Where each of some lengths starts; the last number is the end of all.
function starts(lengths) {
  const result = new Float64Array(lengths.length + 1);
  for (let index = 0; index < lengths.length; index++)
    result[index + 1] = result[index] + lengths[index];
  return result;
}

// The class that colours an item of this type.
function colourOf(type) {
  if (type === "message" || type === "reasoning") return type;
  if (type.startsWith("server_tool")) return "tool";
  return /_call$|_request$/.test(type) ? "call" : "other";
}
