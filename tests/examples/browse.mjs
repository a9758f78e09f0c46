// Uses the web example as a person would, in headless Chromium, and says what was on the screen.
//
//   node browse.mjs HOME CHROMIUM PICTURES     HOME: where playwright-core is installed; PICTURES: a folder for screenshots
//   stdin    {"good": URL, "slow": URL, "faulty": URL, "limited": URL, "refused": URL, "scheme": "light" | "dark", "phone": bool}
//   stdout   one JSON object: what was seen in each state

import { text } from 'node:stream/consumers';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [home, executablePath, pictures] = process.argv.slice(2);
const { chromium } = createRequire(join(home, 'package.json'))('playwright-core');
const { good, slow, faulty, limited, refused, scheme, phone } = JSON.parse(await text(process.stdin));

const QUIET = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath, args: QUIET });
const viewport = phone ? { width: 390, height: 844 } : { width: 1180, height: 760 };
const context = await browser.newContext({
  viewport, colorScheme: scheme, isMobile: phone, hasTouch: phone, deviceScaleFactor: 1, permissions: ['clipboard-read', 'clipboard-write'],
});
context.setDefaultTimeout(10_000);
const seen = { complaints: [], foreign: [] };

async function open(url) {
  const page = await context.newPage();
  page.on('console', message => { if (message.type() === 'error') seen.complaints.push(message.text()); });
  page.on('pageerror', error => seen.complaints.push(String(error)));
  const { origin } = new URL(url);
  page.on('request', request => { if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) seen.foreign.push(request.url()); });
  await page.goto(url);
  return page;
}

const shot = (page, name) => page.screenshot({ path: join(pictures, `${name}-${scheme}${phone ? '-phone' : ''}.png`), animations: 'disabled' });
const words = async (page, selector) => (await page.locator(selector).allInnerTexts()).map(one => one.trim());
const tap = (page, selector) => (phone ? page.locator(selector).tap() : page.locator(selector).click());
const idle = page => page.locator('body:not(.busy) .turn:last-child footer').waitFor();
const wide = page => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);

async function say(page, sentence) {
  const turns = await page.locator('.turn').count();
  await page.locator('#text').fill(sentence);
  await tap(page, '#send');
  await page.locator('.turn').nth(turns).waitFor(); // the server has taken it
}

const TABLE = `A table:

| wire API | provider | complete when | stop reasons |
|---|---|--:|---|
| messages | Anthropic | message_stop | end_turn, tool_use, max_tokens |
| responses | OpenAI | response.completed | completed, incomplete |
| ollama | your own machine | done is true | stop, length |
`;

try {
  // idle, then reasoning and a tool call, to its end
  const page = await open(good);
  await shot(page, '1-idle');
  seen.idle = { heading: await words(page, '#welcome h2'), send: await page.locator('#send').isDisabled() };
  await tap(page, '#ideas button:nth-child(3)');
  await page.locator('.call[data-state="writing"] .arguments:not(:empty)').waitFor();
  seen.growing = await words(page, '.call .arguments');
  await shot(page, '3-tool-growing');
  await idle(page);
  seen.tool = {
    reasoning: await words(page, '.reasoning summary'),
    folded: await page.locator('.reasoning[open]').count(),
    name: await words(page, '.call .title code'),
    state: await words(page, '.call .state'),
    arguments: await words(page, '.call .arguments'),
    output: await words(page, '.call .output'),
    text: await words(page, '.text'),
    facts: await words(page, '.facts'),
    limits: await words(page, '#limits > span'),
    model: await words(page, '#model'),
  };
  await page.locator('.reasoning summary').last().click();
  seen.unfolded = await page.locator('.reasoning .words').last().isVisible();
  await shot(page, '4-tool-done');

  // Markdown, copied, reloaded in the middle, and in a second tab
  await tap(page, '#new');
  await tap(page, '#ideas button:nth-child(2)');
  await page.locator('.streaming .text .code').waitFor();
  await shot(page, '2-streaming');
  await page.reload();
  const second = await open(page.url());
  await idle(page);
  await idle(second);
  const html = one => one.locator('#turns').evaluate(node => node.innerHTML.replace(/\s+/g, ' ').replaceAll(/> | </g, match => match.trim()));
  seen.tabs = { same: (await html(page)) === (await html(second)), turns: await second.locator('.turn').count() };
  await second.close();
  seen.markdown = {
    strong: await words(page, '.text strong'),
    code: await words(page, '.text pre code'),
    keywords: await words(page, '.text .hljs-keyword'),
    items: await page.locator('.text li').count(),
    cells: await words(page, '.text td'),
  };
  await tap(page, '.code .copy');
  seen.copied = { code: await page.evaluate(() => navigator.clipboard.readText()), button: await words(page, '.code .copy') };
  await tap(page, '.actions .copy');
  seen.copied.answer = await page.evaluate(() => navigator.clipboard.readText());
  await shot(page, '5-done');
  await tap(page, '.again');
  await page.locator('body.busy').waitFor();
  await idle(page);
  seen.repeated = { turns: await page.locator('.turn').count(), buttons: await page.locator('.again:visible').count() };
  await say(page, TABLE);
  await idle(page);
  seen.wide = await wide(page);
  await page.locator('.text .table').last().scrollIntoViewIfNeeded();
  await shot(page, '8-table');
  await say(page, '<img src=x onerror="document.title=1"> [x](javascript:alert(1)) `<b>` ![i](https://example.com/i.png)');
  await idle(page);
  const last = page.locator('.turn:last-child .answer');
  const links = await last.locator('a').evaluateAll(found => found.map(link => link.href));
  seen.harmless = { title: await page.title(), images: await last.locator('img').count(), links };

  // Stop
  const stopped = await open(slow);
  await say(stopped, 'Tell me everything about streams. '.repeat(12).trim());
  await stopped.waitForFunction(() => document.querySelector('.streaming .text')?.innerText.length > 120);
  await tap(stopped, '#stop');
  await idle(stopped);
  const before = (await words(stopped, '.text'))[0];
  await stopped.waitForTimeout(200);
  seen.stopped = { note: await words(stopped, '.stopped'), text: before, same: (await words(stopped, '.text'))[0] === before };
  await shot(stopped, '7-stopped');

  // an error that may be tried again at once, one after some seconds, one that no repetition helps
  const failed = await open(faulty);
  await say(failed, 'What happens when the connection breaks in the middle of an answer?');
  await failed.locator('.error').waitFor();
  seen.error = { text: await words(failed, '.text'), note: await words(failed, '.error'), alert: await failed.getByRole('alert').count() };
  await shot(failed, '6-error');
  await tap(failed, '.error button');
  await failed.locator('body.busy').waitFor();
  await failed.locator('.error').waitFor();
  await idle(failed);
  seen.again = { turns: await failed.locator('.turn').count(), errors: await failed.locator('.error').count() };
  const later = await open(limited);
  await say(later, 'And now?');
  await later.locator('.error button').waitFor();
  seen.limited = { note: await words(later, '.error'), waits: await later.locator('.error button').isDisabled(), button: await words(later, '.error button') };
  await shot(later, '9-limited');
  const keyless = await open(refused);
  await say(keyless, 'And with a wrong key?');
  await keyless.locator('.error').waitFor();
  seen.refused = { note: await words(keyless, '.error'), buttons: await keyless.locator('.error button').count() };
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
