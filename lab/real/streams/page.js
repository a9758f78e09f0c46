// A chat page that resumes: the real `useChat` in React, with what the server stored of the chat.

import { DefaultChatTransport, createRoot, html, useChat } from './use-chat.js';

const id = new URLSearchParams(location.search).get('chat');
const stored = await (await fetch(`/stored/${id}`)).json();

function Chat() {
  const chat = useChat({ id, messages: stored, resume: true, transport: new DefaultChatTransport({ api: '/api/chat' }) });
  const texts = message => message.parts.map(part => part.text ?? '').join('');
  return html`<div>
    ${chat.messages.map(message => html`<p key=${message.id} id=${message.id} className=${message.role}>${texts(message)}</p>`)}
    <b>${chat.status}</b>
    <button onClick=${() => chat.sendMessage({ text: 'Tell me' })}>Send</button>
    <button onClick=${() => fetch(`/api/chat/${id}/stop`, { method: 'POST' })}>Stop</button>
  </div>`;
}

createRoot(document.body).render(html`<${Chat} />`);
