// What went wrong, in the words of whoever reads it, and what can be done about it.

import { button, element } from './elements.js';

// Kind of error -> what it is, what to do. The kinds are streamlib's, and those of stream.js.
const FAILURES = {
  authentication: ['The key is missing or wrong', 'Set the key of the provider where the server runs, and start it again.'],
  permission: ['The key may not use this model', 'Choose another model, or ask for access at the provider.'],
  rate_limited: ['Too many requests', 'Wait a moment, then try again.'],
  quota_exhausted: ['The credits are used up', 'Add credits at the provider, or choose another model.'],
  overloaded: ['The model is overloaded', 'It usually helps to try again in a moment.'],
  context_window_exceeded: ['The conversation is too long for the model', 'Start a new chat, and take with it what matters.'],
  request_too_large: ['The message is too large', 'Send it in parts.'],
  content_filter: ['A filter stopped the answer', 'Ask in other words.'],
  not_found: ['There is no such model', 'Set STREAMLIB_MODEL to a model that the provider has.'],
  invalid_request: ['The model cannot take this request', 'Change the question, or what the server sends.'],
  invalid_history: ['The model cannot take this conversation', 'Start a new chat.'],
  truncated: ['The answer broke off', 'What came is above. Try again for all of it.'],
  stalled: ['The model fell silent', 'What came is above. Try again for all of it.'],
  deadline: ['The answer took too long', 'Try again, or ask for less at once.'],
  connection: ['The server cannot reach the model', 'Look whether the provider is reachable, then try again.'],
  malformed: ['The provider sent something that is no answer', 'Look at the server\'s address for the model.'],
};
const UNKNOWN = ['It did not work', 'The log of the server says more.'];
const NEW_CHAT = new Set(['context_window_exceeded', 'invalid_history']);
const EDIT = new Set(['request_too_large', 'content_filter', 'invalid_request']);

// What a kind of error is, and what to do.
export function explained(kind) { return FAILURES[kind] ?? UNKNOWN; }

// The note of a failure. `error` has the fields of streamlib's; `age`: the seconds since it happened. `act` has what may help:
// `again`, `edit`, `fresh`.
export function failureNote(error, age, act) {
  const [what, advice] = explained(error.kind);
  const parts = [element('strong', [what]), element('p', [advice])];
  if (error.retryable) parts.push(againButton(Math.max(0, (error.retry_after ?? 0) - Math.max(0, age)), act.again));
  else if (NEW_CHAT.has(error.kind)) parts.push(button('New chat', act.fresh));
  else if (EDIT.has(error.kind)) parts.push(button('Edit the question', act.edit));
  parts.push(element('small', [[error.kind, error.status && `HTTP ${error.status}`].filter(Boolean).join(' · ')]));
  const note = element('div', parts, 'error');
  note.setAttribute('role', 'alert');
  return note;
}

// A button that can be pressed when the provider will listen again. It counts down in place: its width stays.
function againButton(seconds, again) {
  const made = button('Try again', again);
  const until = performance.now() + seconds * 1000;
  const count = () => {
    const left = Math.ceil((until - performance.now()) / 1000);
    made.disabled = left > 0;
    made.textContent = left > 0 ? `Try again in ${left} s` : 'Try again';
    if (left <= 0) clearInterval(timer);
  };
  const timer = setInterval(count, 250);
  count();
  return made;
}
