// Uses the web example as a person would, in headless Chromium, and says what was on the screen.
//
//   node browse.mjs HOME CHROMIUM PICTURES     HOME: where playwright-core is installed; PICTURES: a folder for screenshots
//   stdin    {"good": URL, "slow": URL, "faulty": URL, "scheme": "light" | "dark", "phone": bool}
//   stdout   one JSON object: what was seen in each state

import { text } from 'node:stream/consumers';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [home, executablePath, pictures] = process.argv.slice(2);
const { chromium } = createRequire(join(home, 'package.json'))('playwright-core');
const { good, slow, faulty, scheme, phone } = JSON.parse(await text(process.stdin));

const QUIET = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath, args: QUIET });
const viewport = phone ? { width: 390, height: 844 } : { width: 1180, height: 760 };
const context = await browser.newContext({ viewport, colorScheme: scheme, isMobile: phone, hasTouch: phone, deviceScaleFactor: 1 });
context.setDefaultTimeout(10_000);
const seen = { complaints: [], foreign: [] };

async function open(url) {
  const page = await context.newPage();
  page.on('console', message => { if (message.type() === 'error') seen.complaints.push(message.text()); });
  page.on('pageerror', error => seen.complaints.push(String(error)));
  page.on('request', request => { if (!request.url().startsWith(url) && !request.url().startsWith('data:')) seen.foreign.push(request.url()); });
  await page.goto(url);
  return page;
}

const shot = (page, name) => page.screenshot({ path: join(pictures, `${name}-${scheme}${phone ? '-phone' : ''}.png`), animations: 'disabled' });
const words = async (page, selector) => (await page.locator(selector).allInnerTexts()).map(one => one.trim());
const tap = (page, selector) => (phone ? page.locator(selector).tap() : page.locator(selector).click());
const idle = page => page.locator('body:not(.busy)').waitFor();

async function say(page, sentence) {
  await page.locator('#text').fill(sentence);
  await tap(page, '#send');
}

try {
  // idle, then a tool call with a thought, to its end
  const page = await open(good);
  await shot(page, '1-idle');
  seen.idle = { heading: await words(page, '#welcome h2'), send: await page.locator('#send').isDisabled() };
  await tap(page, '#ideas button:nth-child(3)');
  await page.locator('.call[data-state="writing"] .arguments:not(:empty)').waitFor();
  seen.growing = await words(page, '.call .arguments');
  await shot(page, '3-tool-growing');
  await idle(page);
  seen.tool = {
    thought: await words(page, '.thought summary'),
    name: await words(page, '.call code'),
    state: await words(page, '.call .state'),
    arguments: await words(page, '.call .arguments'),
    output: await words(page, '.call .output'),
    text: await words(page, '.text'),
    footer: await words(page, 'footer'),
    limits: await words(page, '#limits > span'),
    model: await words(page, '#model'),
  };
  await page.locator('.thought summary').last().click();
  seen.unfolded = await page.locator('.thought .words').last().isVisible();
  await shot(page, '4-tool-done');

  // Markdown, rendered and harmless
  await tap(page, '#new');
  await tap(page, '#ideas button:nth-child(2)');
  await page.locator('.streaming .text pre').waitFor();
  await shot(page, '2-streaming');
  await idle(page);
  seen.markdown = { strong: await words(page, '.text strong'), code: await words(page, '.text pre code'), items: await page.locator('.text li').count() };
  await shot(page, '5-done');
  await page.locator('#think').uncheck({ force: true });
  await say(page, '<img src=x onerror="document.title=1"> [x](javascript:alert(1)) `<b>`');
  await idle(page);
  seen.harmless = { title: await page.title(), images: await page.locator('.answer img').count(), links: await page.locator('.answer a').count() };
  seen.wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);

  // Stop
  const stopped = await open(slow);
  await say(stopped, 'Tell me everything about streams. '.repeat(12).trim());
  await stopped.locator('.streaming .text').waitFor();
  await stopped.waitForFunction(() => document.querySelector('.answer .text')?.innerText.length > 120);
  await tap(stopped, '#stop');
  await idle(stopped);
  const before = (await words(stopped, '.text'))[0];
  await stopped.waitForTimeout(200);
  seen.stopped = { note: await words(stopped, '.stopped'), text: before, same: (await words(stopped, '.text'))[0] === before };
  await shot(stopped, '7-stopped');

  // an error, and another try
  const failed = await open(faulty);
  await say(failed, 'What happens when the connection breaks in the middle of an answer?');
  await failed.locator('.error').waitFor();
  seen.error = { text: await words(failed, '.text'), note: await words(failed, '.error'), alert: await failed.getByRole('alert').count() };
  await shot(failed, '6-error');
  await tap(failed, '.error button');
  await failed.locator('.error').waitFor();
  await idle(failed);
  seen.again = { turns: await failed.locator('.turn').count(), errors: await failed.locator('.error').count() };
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
