// Uses the pages of React and AG-UI as a person would, in headless Chromium, and says what was on the screen.
//
//   node pages.mjs HOME CHROMIUM PICTURES      as browse.mjs
//   stdin    {"page": "react" | "agui", "good": URL, "slow": URL, "failing": URL}
//   stdout   one JSON object: what was seen in each state

import { text } from 'node:stream/consumers';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [home, executablePath, pictures] = process.argv.slice(2);
const { chromium } = createRequire(join(home, 'package.json'))('playwright-core');
const { page: name, good, slow, failing } = JSON.parse(await text(process.stdin));

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'] });
const context = await browser.newContext({ viewport: { width: 900, height: 700 } });
context.setDefaultTimeout(10_000);
const seen = { complaints: [], bodies: [] };

async function open(url) {
  const page = await context.newPage();
  page.on('console', message => { if (message.type() === 'error' && !message.text().includes('529')) seen.complaints.push(message.text()); });
  page.on('pageerror', error => seen.complaints.push(String(error)));
  page.on('request', request => {
    if (new URL(request.url()).origin !== new URL(url).origin) seen.complaints.push(request.url());
    if (request.method() === 'POST') seen.bodies.push(request.postDataJSON());
  });
  await page.goto(`${url}/${name}.html`);
  return page;
}

const press = (page, label) => page.getByRole('button', { name: label, exact: true }).click();
const shown = async page => (await page.locator('#log').innerText()).split(/\s*\n\s*/).filter(line => line !== '');
const again = page => page.getByRole('button', { name: 'Answer again' }).waitFor();

async function say(page, words) {
  await page.getByLabel('Message').fill(words);
  await page.keyboard.press('Enter');
}

try {
  const page = await open(good);
  await say(page, 'A trip, **please**');
  await page.getByRole('button', { name: 'Allow', exact: true }).waitFor();
  seen.asking = await shown(page);
  await page.screenshot({ path: join(pictures, `${name}-approval.png`) });
  await press(page, 'Allow');
  await again(page);
  seen.allowed = await shown(page);
  await page.screenshot({ path: join(pictures, `${name}-done.png`) });
  await press(page, 'Answer again');
  await press(page, 'Do not allow');
  await again(page);
  seen.denied = await shown(page);

  const stopped = await open(slow);
  await say(stopped, 'Tell me');
  await stopped.waitForFunction(() => document.querySelector('.text')?.innerText.length > 0);
  await press(stopped, 'Stop');
  await stopped.getByRole('button', { name: 'Send' }).waitFor();
  seen.stopped = { lines: await shown(stopped), alerts: await stopped.getByRole('alert').count() };

  const failed = await open(failing);
  await say(failed, 'Anybody?');
  await failed.getByRole('alert').waitFor();
  seen.failed = await shown(failed);
  await press(failed, 'Try again');
  await failed.getByRole('button', { name: 'Allow', exact: true }).waitFor();
  seen.repaired = await shown(failed);
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
