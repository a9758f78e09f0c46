// Reads a long answer in the web example while it streams, in headless Chromium, and measures what the reader notices.
//
//   node reading.mjs HOME CHROMIUM     as browse.mjs
//   stdin    {"long": URL, "short": URL, "texts": [Markdown]}      the provider of `long` writes a very long answer
//   stdout   one JSON object: figures and what was seen

import { text } from 'node:stream/consumers';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [home, executablePath] = process.argv.slice(2);
const { chromium } = createRequire(join(home, 'package.json'))('playwright-core');
const { long, short, texts } = JSON.parse(await text(process.stdin));

const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking'] });
const context = await browser.newContext({ viewport: { width: 420, height: 760 } });
context.setDefaultTimeout(150_000);
const seen = {};

// In the page: frames, long tasks and layout shifts since the last call of `figures`.
function watch() {
  const found = { frames: [], tasks: [], shifts: [] };
  new PerformanceObserver(list => found.tasks.push(...list.getEntries().map(entry => entry.duration))).observe({ type: 'longtask' });
  new PerformanceObserver(list => found.shifts.push(...list.getEntries().map(entry => entry.value))).observe({ type: 'layout-shift' });
  let last = performance.now();
  const frame = now => {
    found.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  window.figures = () => {
    const sorted = found.frames.sort((a, b) => a - b);
    const sum = values => Math.round(values.reduce((total, value) => total + value, 0));
    const figures = {
      frames: sorted.length,
      p50: Math.round(sorted[Math.floor(sorted.length / 2)] ?? 0),
      p99: Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0),
      longTasks: found.tasks.length,
      longest: Math.round(Math.max(0, ...found.tasks)),
      blocked: sum(found.tasks),
      seconds: sum(found.frames) / 1000,
      shift: found.shifts.reduce((total, value) => total + value, 0),
    };
    Object.assign(found, { frames: [], tasks: [], shifts: [] });
    return figures;
  };
}

// Milliseconds of CPU of the page's main thread since the last call, a second.
async function load(session) {
  const { metrics } = await session.send('Performance.getMetrics');
  const now = Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
  const before = session.before ?? now;
  session.before = now;
  const seconds = now.Timestamp - before.Timestamp || 1;
  const names = { all: 'TaskDuration', script: 'ScriptDuration', layout: 'LayoutDuration', style: 'RecalcStyleDuration' };
  return Object.fromEntries(Object.entries(names).map(([name, key]) => [name, Math.round(1000 * (now[key] - before[key]) / seconds)]));
}

const busy = page => page.locator('body.busy').waitFor();
const ended = page => page.locator('body:not(.busy) .turn:last-child footer').waitFor();
const place = page => page.evaluate(() => document.querySelector('#log').scrollTop);
const distance = page => page.evaluate(() => { const log = document.querySelector('#log'); return log.scrollHeight - log.scrollTop - log.clientHeight; });
const words = page => page.evaluate(() => document.querySelector('.text')?.textContent.split(/\s+/).length ?? 0);

async function ask(page, question) {
  await page.locator('#text').fill(question);
  await page.keyboard.press('Enter');
  await busy(page);
}

try {
  // follows the end, then the reader goes up and stays there
  const page = await context.newPage();
  await page.addInitScript(watch);
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.goto(long);
  await ask(page, 'Everything, please');
  await page.waitForFunction(() => document.querySelectorAll('.text > *').length > 40);
  seen.followed = await distance(page);
  await page.evaluate(() => window.figures());
  await page.mouse.move(210, 300);
  await page.mouse.wheel(0, -100_000);
  await page.waitForFunction(() => document.querySelector('#log').scrollTop === 0);
  await page.mouse.wheel(0, 400);
  await page.waitForTimeout(500);
  seen.jump = await page.locator('#jump').isVisible();

  // a selection above, a scrolled table, a selection in the open end
  await page.evaluate(() => {
    const [table] = document.querySelectorAll('.table');
    table.scrollLeft = 60;
    const paragraph = document.querySelector('.text p');
    getSelection().selectAllChildren(paragraph);
    window.before = { selection: String(getSelection()), top: paragraph.getBoundingClientRect().top, table: table.scrollLeft };
    window.figures();
  });
  await load(session);
  const began = { words: await words(page), top: await place(page) };
  await page.waitForTimeout(4000);
  seen.reading = await page.evaluate(() => ({
    ...window.figures(),
    selected: String(getSelection()) === window.before.selection && window.before.selection !== '',
    moved: document.querySelector('.text p').getBoundingClientRect().top - window.before.top,
    table: [window.before.table, document.querySelector('.table').scrollLeft],
  }));
  seen.reading.cpu = await load(session);
  seen.reading.came = (await words(page)) - began.words;
  await page.waitForFunction(() => {
    const last = document.querySelector('.text').lastElementChild;
    const node = document.createTreeWalker(last, NodeFilter.SHOW_TEXT).nextNode();
    if (last.nodeName !== 'P' || node.data.length < 12) return false;
    getSelection().setBaseAndExtent(node, 4, node, 12);
    window.before.open = String(getSelection());
    window.before.last = last;
    return true;
  });
  await page.waitForFunction(() => document.querySelector('.text').lastElementChild !== window.before.last);
  seen.openEnd = await page.evaluate(() => [String(getSelection()), window.before.open]);

  // back to the end by the button, to the end of the answer
  await page.locator('#jump').click();
  seen.jumped = (await distance(page)) < 2;
  await page.evaluate(() => window.figures());
  await load(session);
  await page.waitForTimeout(6000);
  seen.followingLoad = await load(session);
  await page.evaluate(() => { document.querySelector('#log').scrollTop -= 300; });
  const above = await place(page);
  await ended(page);
  await page.waitForTimeout(300);
  seen.following = { ...await page.evaluate(() => window.figures()), cpu: seen.followingLoad };
  seen.atEnd = { words: await words(page), moved: (await place(page)) - above };

  // the same again, from the server
  const again = await context.newPage();
  await again.addInitScript(watch);
  await again.goto(page.url());
  await ended(again);
  seen.reload = await again.evaluate(() => window.figures());
  const settled = one => one.locator('.text').innerText();
  seen.same = (await settled(again)) === (await settled(page));

  // the keyboard alone, and what a screen reader is given
  const keys = await context.newPage();
  await keys.goto(short);
  await keys.locator('#text').waitFor();
  const focused = () => keys.evaluate(() => document.activeElement.ariaLabel || document.activeElement.innerText || document.activeElement.id);
  await keys.keyboard.type('What is **this**?');
  await keys.keyboard.press('Enter');
  await busy(keys);
  seen.busyLog = await keys.locator('.answer').getAttribute('aria-busy');
  await keys.keyboard.press('Escape');
  await ended(keys);
  seen.stopped = await keys.locator('.stopped').count();
  await keys.keyboard.insertText('Like this:\n\n```py\nx = 1\n```');
  await keys.keyboard.press('Enter');
  await busy(keys);
  await ended(keys);
  seen.tree = await keys.locator('#log').ariaSnapshot();
  seen.stops = [];
  await keys.evaluate(() => document.activeElement.blur());
  for (let n = 0; n < 14; n += 1) {
    await keys.keyboard.press('Tab');
    seen.stops.push(await focused());
  }
  // a tab in the background gives its connection back
  const hide = hidden => keys.evaluate(is => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => is });
    document.dispatchEvent(new Event('visibilitychange'));
  }, hidden);
  const closed = keys.waitForEvent('requestfailed', request => request.url().endsWith('/events'));
  await hide(true);
  await closed;
  const opened = keys.waitForRequest(request => request.url().endsWith('/events'));
  await hide(false);
  seen.resumed = (await opened).postDataJSON().after > 0;

  // the server is gone for a while
  await hide(true);
  await keys.route('**/events', route => route.abort());
  await hide(false);
  await keys.getByRole('button', { name: 'Try now' }).waitFor();
  seen.lost = await keys.getByRole('status').innerText();
  await keys.unroute('**/events');
  await keys.getByRole('button', { name: 'Try now' }).click();
  await keys.locator('#line:empty').waitFor({ state: 'attached' });
  await keys.locator('#text').fill('Are you back?');
  await keys.keyboard.press('Enter');
  await keys.locator('.turn').nth(2).waitFor();
  await ended(keys);
  seen.back = await keys.locator('.turn').count();
  seen.role = await keys.getByRole('log', { name: 'Conversation' }).count();

  // what grew in random deltas looks as if it had come at once
  seen.growing = await keys.evaluate(async ({ texts, rounds }) => {
    const { Markdown } = await import('./markdown.js');
    const page = markdown => markdown.root.innerHTML.replace(/>\s+</g, '><').replace(/\s+/g, ' ');
    let seed = 1;
    const random = most => {
      seed = (seed * 48271) % 2147483647;
      return 1 + (seed % most);
    };
    const different = [];
    for (const text of texts) {
      const whole = new Markdown(document.createElement('div'));
      whole.append(text);
      whole.end();
      for (let round = 0; round < rounds; round += 1) {
        const grown = new Markdown(document.createElement('div'));
        const most = [7, 40, 300, 3000][round % 4];
        for (let from = 0; from < text.length;) {
          const to = from + random(most);
          grown.append(text.slice(from, to));
          grown.end();
          from = to;
        }
        if (page(grown) !== page(whole)) different.push([page(grown).slice(0, 3000), page(whole).slice(0, 3000)]);
      }
    }
    return different;
  }, { texts, rounds: 8 });

  // a mistake of the page itself, in the middle of an answer
  const broken = await context.newPage();
  await broken.goto(short);
  await broken.evaluate(() => { CharacterData.prototype.replaceData = () => { throw new Error('a mistake of the page'); }; });
  const cut = broken.waitForEvent('requestfailed', request => request.url().endsWith('/events'));
  await ask(broken, 'Many words, please');
  await cut;
  seen.mistake = await broken.getByRole('status').innerText();
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
