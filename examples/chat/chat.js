// A chat with the real `useChat` of the AI SDK: it shows what is stored, resumes what is written, asks for approvals, and stops.

import { DefaultChatTransport, createRoot, html, useChat, useState } from './use-chat.js';
import { lastAssistantMessageIsCompleteWithApprovalResponses } from './use-chat.js';

const place = new URL(location);
const id = place.searchParams.get('chat') ?? crypto.randomUUID();
place.searchParams.set('chat', id);
history.replaceState(null, '', place);

const transport = new DefaultChatTransport({
  api: 'api/chat',
  // The server has the conversation: only what is new is sent.
  prepareSendMessagesRequest: ({ messages }) => ({ body: { id, message: messages.at(-1) } }),
});

function Chat({ stored }) {
  const chat = useChat({
    id, transport, messages: stored, resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const busy = chat.status === 'submitted' || chat.status === 'streaming';
  const stop = () => fetch(`api/chat/${id}/stop`, { method: 'POST' });
  return html`<main>
    <div id="log" role="log" aria-busy=${busy}>
      ${chat.messages.map(message => html`<${Message} key=${message.id} message=${message} approve=${chat.addToolApprovalResponse} />`)}
      ${chat.error && html`<p className="error" role="alert">${chat.error.message}</p>`}
    </div>
    <${Composer} busy=${busy} stop=${stop} send=${text => chat.sendMessage({ text })} />
  </main>`;
}

function Message({ message, approve }) {
  return html`<article className=${message.role}>${message.parts.map((part, n) => html`<${Part} key=${n} part=${part} approve=${approve} />`)}</article>`;
}

function Part({ part, approve }) {
  if (part.type === 'text') return html`<p className="text">${part.text}</p>`;
  if (part.type === 'reasoning') return html`<details><summary>Thoughts</summary>${part.text}</details>`;
  if (part.type === 'tool-book_trip' || part.type === 'tool-get_weather') return html`<${Tool} part=${part} approve=${approve} />`;
  return null; // where a step starts, …
}

function Tool({ part, approve }) {
  const decide = approved => () => approve({ id: part.approval.id, approved });
  return html`<div className="tool" data-state=${part.state}>
    <code>${part.type.slice(5)} ${JSON.stringify(part.input)}</code>
    ${part.state === 'approval-requested' && html`<button onClick=${decide(true)}>Allow</button><button onClick=${decide(false)}>Do not allow</button>`}
    ${(part.output ?? part.errorText) && html`<output>${part.errorText ?? part.output}</output>`}
  </div>`;
}

function Composer({ busy, stop, send }) {
  const [text, setText] = useState('');
  const submit = event => {
    event.preventDefault();
    if (busy || !text.trim()) return;
    send(text);
    setText('');
  };
  return html`<form onSubmit=${submit}>
    <input aria-label="Message" value=${text} onInput=${event => setText(event.target.value)} />
    ${busy ? html`<button type="button" onClick=${stop}>Stop</button>` : html`<button type="submit">Send</button>`}
  </form>`;
}

const stored = await (await fetch(`api/chat/${id}`)).json();
createRoot(document.body).render(html`<${Chat} stored=${stored} />`);
