// Elements, made by hand and never from HTML.

const SHOWN = 2000; // milliseconds that a button says what it did

export function element(name, children = [], className = '') {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export function button(label, onClick, className = '') {
  const made = element('button', [label], className);
  made.type = 'button';
  made.addEventListener('click', onClick);
  return made;
}

// A button that copies what `text` returns. Its width does not change with its words, so that nothing beside it moves.
export function copyButton(label, text) {
  const made = button('Copy', async () => {
    made.textContent = await copied(text()) ? 'Copied' : 'Not allowed';
    made.ariaLabel = made.textContent; // the button has the focus: its new name is read
    setTimeout(() => {
      made.textContent = 'Copy';
      made.ariaLabel = label;
    }, SHOWN);
  }, 'copy');
  made.ariaLabel = label;
  return made;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // by the user's settings, or the page is not on https
  }
}

export function link(address, label) {
  const made = element('a', [label]);
  return Object.assign(made, { href: address, target: '_blank', rel: 'noreferrer' });
}

// The address, if it is one of the web.
export function webAddress(text) {
  try {
    const url = new URL(text);
    return /^https?:\/\/[^/]/.test(text) && url.host ? url : null;
  } catch {
    return null;
  }
}
