// Colours code, as HTML of `span`s with classes; null where it stays plain.

import hljs from '../vendor/highlight.js';

const LONGEST = 20_000; // characters: one long line of data would take longer than a frame

export function highlighted(language, code) {
  if (!hljs.getLanguage(language) || code.length > LONGEST) return null;
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}
