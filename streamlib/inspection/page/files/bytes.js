// Bytes as they were received: text where they are UTF-8, \xNN for every other byte, so that
// nothing is lost; between them the borders of chunks.

const RAW_BYTES = 16384; // of one frame that are shown
const HEX_BYTES = 4096;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function hex(number, digits) {
  return number.toString(16).padStart(digits, "0");
}

// [isText, text] for each run of bytes.
function byteRuns(bytes) {
  const runs = [];
  for (let start = 0; start < bytes.length;) {
    let end = start;
    while (end < bytes.length && characterSize(bytes, end)) end += characterSize(bytes, end);
    if (end > start) runs.push([true, UTF8.decode(bytes.subarray(start, end))]);
    else runs.push([false, `\\x${hex(bytes[end++], 2)}`]);
    start = end;
  }
  return runs;
}

// How many bytes the character at an offset has; 0 where there is no complete one.
function characterSize(bytes, offset) {
  const first = bytes[offset];
  if (first < 0x80) return 1;
  const size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  try {
    UTF8.decode(bytes.subarray(offset, offset + size));
    return size;
  } catch {
    return 0;
  }
}

function rawView(bytes, borders) {
  const view = make("pre", { class: "mono" });
  const ends = [...borders.filter(border => border < RAW_BYTES), Math.min(bytes.length, RAW_BYTES)];
  let start = 0;
  for (const end of ends) {
    for (const [isText, text] of byteRuns(bytes.subarray(start, end))) {
      view.append(isText ? quoted(text) : make("span", { class: "raw" }, text));
    }
    start = end;
    if (end === ends[ends.length - 1]) break;
    const title = isInside(bytes, end)
      ? "a chunk ends here, inside a character"
      : "a chunk ends here";
    view.append(make("span", { class: "border", title }, isInside(bytes, end) ? "┊" : "│"));
  }
  return [view, ...more(bytes, RAW_BYTES)];
}

// In UTF-8 only the bytes behind the first of a character begin with the bits 10.
function isInside(bytes, border) {
  return (bytes[border] & 0xc0) === 0x80;
}

function hexView(bytes, borders, start) {
  const lines = [];
  const end = Math.min(bytes.length, HEX_BYTES);
  for (let line = 0; line < end; line += 16) {
    let codes = "";
    let signs = "";
    for (let index = line; index < Math.min(line + 16, end); index++) {
      codes += (borders.includes(index) ? "│" : " ") + hex(bytes[index], 2);
      signs +=
        bytes[index] >= 0x20 && bytes[index] < 0x7f ? String.fromCharCode(bytes[index]) : "·";
    }
    lines.push(`${hex(start + line, 6)} ${codes.padEnd(48)}  ${signs}`);
  }
  return [make("pre", { class: "hex" }, lines.join("\n")), ...more(bytes, HEX_BYTES)];
}

function more(bytes, limit) {
  return bytes.length > limit
    ? [make("p", { class: "soft" }, `and ${count(bytes.length - limit, "byte")} more`)]
    : [];
}

// Where chunks end inside a frame or at its start, as offsets in the frame.
function bordersIn(model, frame, split) {
  const [start, end] = [model.frameStarts[frame], model.frameStarts[frame + 1]];
  const borders = [];
  if (split === "recorded") {
    const { chunkStarts } = model;
    for (let index = lastAtMost(chunkStarts, start - 1) + 1; chunkStarts[index] < end; index++)
      borders.push(chunkStarts[index] - start);
  } else if (split !== "whole") {
    for (let border = Math.ceil(start / split) * split; border < end; border += split)
      borders.push(border - start);
  }
  return borders.filter(border => start + border > 0);
}
