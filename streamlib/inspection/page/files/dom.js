// Elements. Whatever comes from a recording becomes a text node or the value of an attribute that
// no browser runs: nothing in this page takes HTML from a string.

const SVG = "http://www.w3.org/2000/svg";

function at(id) {
  return document.getElementById(id);
}

function make(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function makeSvg(name, attributes, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// An element that shows a text of the recording. It is a unit of its own for the order of writing,
// so that Arabic in a row, or a sign that turns the order, moves nothing beside it.
function quoted(text, className) {
  return make("bdi", { class: className }, shown(text));
}

// Controls, and signs that change the order of what follows, are shown by their number. Joiners
// stay: emoji and Persian are written with them.
const UNSEEN =
  /[\0-\b\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

function shown(text) {
  return String(text).replace(UNSEEN, sign => {
    const number = sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
    return `⟨U+${number}⟩`;
  });
}

function oneLine(text, length) {
  const line = shown(text.slice(0, length + 1)).replace(/[\n\t]/g, sign =>
    sign === "\n" ? "⏎" : " ",
  );
  return text.length > length ? `${line.slice(0, length)}…` : line;
}
