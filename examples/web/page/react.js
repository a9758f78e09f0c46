// A chat with the real `useChat` of the AI SDK: approval of a tool, stop, regenerate. `html` is JSX without a build step (htm).

import { DefaultChatTransport, createRoot, html, useChat, useEffect, useRef, useState } from './vendor/use-chat.js';
import { lastAssistantMessageIsCompleteWithApprovalResponses } from './vendor/use-chat.js';
import { explained } from './failures.js';
import { Markdown } from './markdown.js';

const transport = new DefaultChatTransport({ api: 'api/chat' });

function Chat() {
  const [failure, setFailure] = useState({}); // what the stream said of an error: kind, retryable, retry_after
  const chat = useChat({
    transport,
    // Goes on by itself once the user has decided about every call.
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onData: part => { if (part.type === 'data-error') setFailure(part.data); },
  });
  const busy = chat.status === 'submitted' || chat.status === 'streaming';
  const last = chat.messages.at(-1);
  const answered = last?.role === 'assistant' && !last.parts.some(part => part.state === 'approval-requested');
  const again = () => { setFailure({}); chat.regenerate(); };
  return html`
    <header><h1>streamlib with useChat</h1></header>
    <main><div id="log" role="log" aria-label="Conversation" aria-busy=${busy} tabindex="0">
      ${chat.messages.map(message => html`<${Message} key=${message.id} message=${message} approve=${chat.addToolApprovalResponse} />`)}
      ${chat.status === 'submitted' && html`<div className="waiting">Waiting for the model</div>`}
      ${chat.error && html`<${Failure} error=${chat.error} failure=${failure} again=${again} />`}
      ${answered && !busy && !chat.error && html`<div><button className="again" onClick=${again}>Answer again</button></div>`}
    </div></main>
    <${Composer} busy=${busy} stop=${chat.stop} send=${text => { setFailure({}); chat.sendMessage({ text }); }} />`;
}

function Message({ message, approve }) {
  if (message.role === 'user') {
    const text = message.parts.map(part => part.text ?? '').join('');
    return html`<article className="turn" aria-label="You"><div className="asked"><div className="words">${text}</div></div></article>`;
  }
  const parts = message.parts.map((part, n) => html`<${Part} key=${n} part=${part} approve=${approve} />`);
  return html`<article className="turn answer" aria-label="Assistant">${parts}</article>`;
}

function Part({ part, approve }) {
  if (part.type === 'text') return html`<${Text} text=${part.text} />`;
  if (part.type === 'reasoning') {
    return html`<details className="reasoning"><summary>Thoughts</summary><div className="words">${part.text}</div></details>`;
  }
  if (part.type === 'dynamic-tool' || part.type.startsWith('tool-')) return html`<${Tool} part=${part} approve=${approve} />`;
  return null; // where a step starts, rate limits, …
}

const STATES = {
  'input-streaming': 'writing arguments', 'input-available': 'running', 'approval-requested': 'may it run?', 'approval-responded': 'decided',
  'output-available': 'done', 'output-error': 'failed', 'output-denied': 'not allowed',
};

function Tool({ part, approve }) {
  const { approval, input, output, errorText, state, toolName, type } = part;
  const decide = approved => () => approve({ id: approval.id, approved });
  return html`<div className="call" data-state=${state === 'output-available' ? 'done' : 'running'}>
    <div className="title"><code>${toolName ?? type.slice(5)}</code><span className="state">${STATES[state]}</span></div>
    <pre className="arguments">${JSON.stringify(input, null, 2)}</pre>
    ${state === 'approval-requested' && html`<div className="output"><button className="choice" onClick=${decide(true)}>Allow</button>${' '}
      <button className="choice" onClick=${decide(false)}>Do not allow</button></div>`}
    ${(output ?? errorText) && html`<div className="output">${errorText ?? (typeof output === 'string' ? output : JSON.stringify(output))}</div>`}
  </div>`;
}

// Markdown that keeps its nodes while it grows.
function Text({ text }) {
  const root = useRef(null);
  const markdown = useRef(null);
  useEffect(() => {
    markdown.current ??= new Markdown(root.current);
    markdown.current.append(text.slice(markdown.current.text.length));
    markdown.current.end();
  }, [text]);
  return html`<div className="text" ref=${root} />`;
}

function Failure({ error, failure, again }) {
  // Before the stream began, the message is the body of the response: {"error": {kind, retryable, …}}.
  let details = failure;
  try { details = JSON.parse(error.message).error; } catch { /* a failure in the stream: its data came apart */ }
  const [what, advice] = explained(details.kind);
  const button = details.retryable && html`<button onClick=${again}>Try again</button>`;
  return html`<div className="error" role="alert"><strong>${what}</strong><p>${advice}</p>${button}</div>`;
}

function Composer({ busy, stop, send }) {
  const [text, setText] = useState('');
  const submit = event => {
    event.preventDefault();
    if (busy || !text.trim()) return;
    send(text);
    setText('');
  };
  return html`<form onSubmit=${submit}><div className="box">
    <textarea rows="1" aria-label="Message" placeholder="Message" value=${text} onInput=${event => setText(event.target.value)}
      onKeyDown=${event => { if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) submit(event); }} />
    <div className="row">${busy
    ? html`<button id="stop" type="button" onClick=${stop}>Stop</button>`
    : html`<button id="send" type="submit" disabled=${!text.trim()}>Send</button>`}</div>
  </div></form>`;
}

createRoot(document.body).render(html`<${Chat} />`);
