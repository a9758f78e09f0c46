// Reloads a chat page while its message is written, stops another, and reads a log with EventSource, in headless Chromium.
//
//   node browse.mjs HOME CHROMIUM URL CUTTING     HOME: where playwright-core is; CUTTING: events of a server that cuts connections
//   stdout  {reloaded: [what was on the page soon after each reload], whole, ended, stopped, ids, complaints}

import { createRequire } from 'node:module';
import { join } from 'node:path';

const [home, executablePath, url, cutting] = process.argv.slice(2);
const { chromium } = createRequire(join(home, 'package.json'))('playwright-core');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'] });
const context = await browser.newContext();
context.setDefaultTimeout(15_000);
const complaints = [];

async function open(chat) {
  const page = await context.newPage();
  page.on('pageerror', error => complaints.push(String(error)));
  await page.goto(`${url}/?chat=${chat}`);
  return page;
}

const press = (page, name) => page.getByRole('button', { name }).click();
const shows = (page, words) => page.waitForFunction(text => document.querySelector('.assistant')?.innerText.includes(text), words);
const status = (page, name) => page.waitForFunction(text => document.querySelector('b')?.innerText === text, name);
const answers = page => page.locator('.assistant').evaluateAll(nodes => nodes.map(node => [node.id, node.textContent]));

try {
  const page = await open('one');
  await press(page, 'Send');
  const reloaded = [];
  for (const word of ['word 8 ', 'word 20 ', 'word 30 ']) {
    await shows(page, word.trim());
    await page.reload();
    await shows(page, word.trim());
    reloaded.push(await answers(page));
  }
  await status(page, 'ready');
  const whole = await answers(page);
  await page.reload();
  await status(page, 'ready');
  const ended = await answers(page);

  const other = await open('two');
  await press(other, 'Send');
  await shows(other, 'word 5');
  await other.reload();
  await shows(other, 'word 5');
  await press(other, 'Stop');
  await status(other, 'ready');
  const stopped = await answers(other);

  const ids = await page.evaluate(address => new Promise(resolve => {
    const found = [];
    const source = new EventSource(address);
    source.onmessage = event => found.push(event.lastEventId);
    source.onerror = () => { if (source.readyState === EventSource.CLOSED) resolve(found); };
  }), cutting);
  process.stdout.write(JSON.stringify({ reloaded, whole, ended, stopped, ids, complaints }));
} finally {
  await browser.close();
}
