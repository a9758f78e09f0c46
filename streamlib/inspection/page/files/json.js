// JSON as it was written, and JSON that is not complete yet.

const JSON_SHOWN = 200000; // characters of one JSON text: a request may hold images of megabytes

// A JSON text with line breaks, or its start and the size of what was left out.
function shownJson(text, limit = JSON_SHOWN) {
  const left = text.length - limit;
  if (left <= 0) return shown(indented(text));
  const size = count(left, "character");
  return `${shown(indented(text.slice(0, limit)))}\n… ${size} of ${count(text.length)} left out`;
}

// With line breaks, but otherwise unchanged: JSON.parse would round numbers and drop second keys.
// A string without an end goes to the end of the text: otherwise a search would begin at each of
// its quotes.
function indented(text) {
  let depth = 0;
  const newLine = step => {
    depth += step;
    return `\n${"  ".repeat(Math.max(0, Math.min(depth, 40)))}`;
  };
  return text.replace(
    /("[^"\\]*(?:\\[^][^"\\]*)*(?:"|\\?$))|[{[](?!\s*[}\]])|[}\]]|,|:|\s+/g,
    (token, string, offset) => {
      if (string) return string;
      if (token === "{" || token === "[") return token + newLine(1);
      if (token === ",") return token + newLine(0);
      if (token === ":") return ": ";
      if (token === "}" || token === "]")
        return /[{[]\s*$/.test(text.slice(Math.max(0, offset - 9), offset))
          ? token
          : newLine(-1) + token;
      return "";
    },
  );
}

const STRING = /("(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)("?)/.source; // and its quote
const PLAIN = /(-?\d[-+.\deE]*|true|false|null)/.source;
const JSON_TOKEN = new RegExp(`\\s*(?:([{[])|([}\\]])|([,:])|${STRING}|${PLAIN})`, "y");

// The part of a growing JSON text that is certain, as `stream.partial` gives it: a string grows; a
// key without a value, a number that may go on, and half an escape wait.
// Returns the entries of the root: [[key, value]], a value being a text (of JSON) or entries.
function partialJson(text) {
  const root = { isArray: true, entries: [] };
  const stack = [root];
  let key = null;
  JSON_TOKEN.lastIndex = 0;
  for (let token = JSON_TOKEN.exec(text); token !== null; token = JSON_TOKEN.exec(text)) {
    const [, opening, closing, mark, string, quote, plain] = token;
    const parent = stack[stack.length - 1];
    const isComplete = quote || JSON_TOKEN.lastIndex < text.length;
    if (closing) stack.pop();
    if (!stack.length) break;
    if (mark === ",") key = null;
    if (closing || mark) continue;
    if (string && !parent.isArray && key === null) {
      if (!quote) break;
      key = decoded(string);
      continue;
    }
    // A number at the end may have further digits.
    if (plain && /\d/.test(plain) && !isComplete) break;
    let value = { text: plain };
    if (opening) value = { isArray: opening === "[", entries: [] };
    else if (string) value = { text: JSON.stringify(decoded(string)), isOpen: !quote };
    parent.entries.push([parent.isArray ? parent.entries.length : key, value]);
    key = null;
    if (opening) stack.push(value);
  }
  return root.entries;
}

// The text of a string, without half a surrogate pair at its end, whose other half may follow.
function decoded(string) {
  const text = string.replace(/\\u[dD][89abAB][0-9a-fA-F]{2}$/, "");
  try {
    return JSON.parse(`${text}"`);
  } catch {
    return text.slice(1); // with line breaks in it, which JSON does not allow
  }
}

const TREE_NODES = 400; // shown of one tree

function tree(entries, budget = { left: TREE_NODES }) {
  const list = make("ul", { class: "tree" });
  for (const [key, value] of entries) {
    budget.left -= 1;
    if (budget.left < 0) return filled(list, {}, [make("li", {}, "…")]);
    const entry = make("li", {}, quoted(`${key}: `));
    if (value.entries) entry.append(value.isArray ? "[ ]" : "{ }", tree(value.entries, budget));
    else entry.append(quoted(value.text));
    if (value.isOpen) entry.append(caret());
    list.append(entry);
  }
  return list;
}

function caret() {
  return make("span", { class: "caret", "aria-hidden": "true" });
}
