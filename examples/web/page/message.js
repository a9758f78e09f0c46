// One message of AG-UI on the screen: its text, as Markdown where a model wrote it, and its calls.

import { element } from './elements.js';
import { Markdown } from './markdown.js';

// Role -> class of the element, class of the text, name for screen readers.
const ROLES = {
  user: ['asked', 'words', 'You'],
  tool: ['call', 'output', 'Output of a tool'],
  reasoning: ['reasoning', 'words', 'Reasoning'],
};

export class MessageView {
  constructor({ role }, log) {
    const [outer, inner, label] = ROLES[role] ?? ['', 'text', 'Assistant'];
    const folds = role === 'reasoning';
    this.text = element('div', [], inner);
    this.calls = element('div');
    const parts = folds ? [element('summary', ['Thoughts']), this.text] : [this.text];
    this.root = element('article', [element(folds ? 'details' : 'div', parts, outer), this.calls], 'turn');
    this.root.ariaLabel = label;
    this.markdown = inner === 'text' ? new Markdown(this.text) : null;
    log.append(this.root);
  }

  // Shows the message as it is now; what it had stays.
  draw({ content, toolCalls = [] }) {
    if (this.markdown) {
      this.markdown.append((content ?? '').slice(this.markdown.text.length));
      this.markdown.end();
    } else {
      this.text.textContent = typeof content === 'string' ? content : JSON.stringify(content);
    }
    this.calls.hidden = toolCalls.length === 0;
    this.calls.replaceChildren(...toolCalls.map(call));
  }
}

function call({ function: { name, arguments: given } }) {
  const title = element('div', [element('code', [name])], 'title');
  return element('div', [title, element('pre', [given], 'arguments')], 'call');
}
