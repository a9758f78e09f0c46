// Asks, and gives the events of the answer as they come.
//
// The server writes one JSON object a frame: `data: {"type": "output_text_delta", …}`. EventSource cannot send a body and asks again
// by itself, so the frames are read from fetch. Aborting the signal closes the connection: that is what Stop is.

export async function* events(body, signal) {
  const response = await fetch('ask', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  });
  if (!response.ok) throw new Error(`the page's server answered ${response.status}: ${await response.text()}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (held + value).split('\n\n');
    held = frames.pop();
    for (const frame of frames) yield JSON.parse(frame.slice('data: '.length));
  }
}
