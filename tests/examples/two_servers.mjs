// Uses the web example behind a proxy, in headless Chromium, while its servers die and come back, and says what was on the screen.
//
//   node two_servers.mjs HOME CHROMIUM     HOME: where playwright-core is installed
//   stdin    {"proxy": URL, "other": URL}, then a line whenever a step was done
//   stdout   {"step": …} for what is to be done, then one JSON object: what was seen

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const [home, executablePath] = process.argv.slice(2);
const { chromium } = createRequire(join(home, 'package.json'))('playwright-core');
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { proxy, other } = JSON.parse((await lines.next()).value);

const QUIET = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath, args: QUIET });
const context = await browser.newContext();
context.setDefaultTimeout(20_000);
const seen = { errors: [] };

async function open(url) {
  const page = await context.newPage();
  page.on('pageerror', error => seen.errors.push(String(error)));
  await page.goto(url);
  return page;
}

const words = async (page, selector) => (await page.locator(selector).allInnerTexts()).map(one => one.trim());

async function ready(step) {
  console.log(JSON.stringify({ step }));
  await lines.next();
}

async function say(page, sentence) {
  const turns = await page.locator('.turn').count();
  await page.locator('#text').fill(sentence);
  await page.locator('#send').click();
  await page.locator('.turn').nth(turns).waitFor();
  await page.waitForFunction(() => document.querySelector('.turn:last-child .text')?.innerText.length > 40);
}

try {
  const page = await open(proxy);
  await say(page, 'word '.repeat(2000));
  const shown = (await words(page, '.turn:last-child .text')).join('');

  await ready('kill'); // the server that writes
  const killed = performance.now();
  await page.locator('.turn:last-child .error').waitFor();
  await page.locator('body:not(.busy)').waitFor();
  seen.seconds = (performance.now() - killed) / 1000;
  seen.ended = { note: await words(page, '.error strong'), buttons: await words(page, '.error button') };
  seen.kept = (await words(page, '.turn:last-child .text')).join('').startsWith(shown.slice(0, 40));

  await page.reload();
  await page.locator('.turn:last-child .error').waitFor();
  seen.reloaded = { turns: await page.locator('.turn').count(), note: await words(page, '.error strong'), busy: await page.locator('body.busy').count() };

  await say(page, 'more '.repeat(2000)); // the other server writes it
  await page.reload();
  await page.waitForFunction(() => document.querySelector('.turn:last-child .text')?.innerText.length > 40);
  seen.resumed = { turns: await page.locator('.turn').count(), busy: await page.locator('body.busy').count() };

  await ready('start'); // the first server again
  const { search } = new URL(page.url());
  const second = await open(`${other}/${search}`);
  await second.locator('#stop').click();
  for (const tab of [second, page]) await tab.locator('.turn:last-child .stopped').waitFor();
  seen.stopped = await words(page, '.turn:last-child .stopped');
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
process.exit(0);
