// Uses the gateway's page as an operator would, in headless Chromium and by keyboard, and says what was on the screen.
//
//   node gateway_page.mjs HOME CHROMIUM PICTURES     HOME: where playwright-core is installed; PICTURES: a folder for screenshots
//   stdin    {"url": URL, "token": TOKEN, "streams": N, "scheme": "light" | "dark", "phone": bool}
//   stdout   one JSON object: what was seen

import { text } from 'node:stream/consumers';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [home, executablePath, pictures] = process.argv.slice(2);
const { chromium } = createRequire(join(home, 'package.json'))('playwright-core');
const { url, token, streams, scheme, phone } = JSON.parse(await text(process.stdin));

const QUIET = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath, args: QUIET });
const viewport = phone ? { width: 390, height: 844 } : { width: 1180, height: 760 };
const context = await browser.newContext({ viewport, colorScheme: scheme, isMobile: phone, hasTouch: phone, deviceScaleFactor: 1 });
context.setDefaultTimeout(10_000);
const seen = { complaints: [], foreign: [], urls: [], faint: [], wide: [] };

const page = await context.newPage();
page.on('console', message => { if (message.type() === 'error' && !message.text().includes('401')) seen.complaints.push(message.text()); });
page.on('pageerror', error => seen.complaints.push(String(error)));
page.on('request', request => {
  seen.urls.push(request.url());
  if (!request.url().startsWith(url)) seen.foreign.push(request.url());
});

const shot = name => page.screenshot({ path: join(pictures, `gateway-${name}-${scheme}${phone ? '-phone' : ''}.png`), fullPage: true });
const words = async selector => (await page.locator(selector).allInnerTexts()).map(one => one.trim());
const focused = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.textContent?.trim());

// Texts whose contrast is below 4.5 to 1 (WCAG AA), and pages wider than the screen.
async function look(name) {
  const faint = await page.evaluate(() => {
    const rgb = text => text.match(/[\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
      const part = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const behind = node => {
      for (; node; node = node.parentElement) {
        const color = rgb(getComputedStyle(node).backgroundColor);
        if (color.length === 3 || color[3] > 0) return color;
      }
      return [255, 255, 255];
    };
    const found = [];
    for (const node of document.querySelectorAll('body *')) {
      const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
      if (!own || !node.checkVisibility() || node.closest('noscript, script, style')) continue;
      const [one, two] = [light(rgb(getComputedStyle(node).color)), light(behind(node))].sort((a, b) => b - a);
      const contrast = (one + 0.05) / (two + 0.05);
      if (contrast < 4.5) found.push(`${node.tagName} ${node.textContent.slice(0, 20)} ${contrast.toFixed(2)}`);
    }
    return found;
  });
  seen.faint.push(...faint);
  if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) seen.wide.push(name);
  await shot(name);
}

try {
  await page.goto(url);
  // A browser applies `autofocus` when it first draws the page, which may be after its load event.
  await page.waitForFunction(() => document.activeElement !== document.body, null, { timeout: 5000 }).catch(() => {});
  seen.form = { focused: await focused(), type: await page.locator('#token').getAttribute('type'), label: await words('label') };
  await look('1-sign-in');
  await page.keyboard.type('not it');
  await page.keyboard.press('Enter');
  await page.locator('[role=alert]').waitFor();
  seen.mistaken = await words('[role=alert]');
  await look('2-mistaken');
  await page.locator('#token').focus();
  await page.keyboard.type(token);
  await page.keyboard.press('Enter');
  await page.waitForFunction(count => document.querySelectorAll('#streams tbody tr').length >= count, streams);
  await page.waitForFunction(() => document.querySelectorAll('#errors > li').length >= 2);
  await page.waitForTimeout(2500); // some seconds of speed
  seen.rows = await page.locator('#streams tbody tr').evaluateAll(rows => rows.map(row => [...row.cells].map(cell => cell.innerText.trim())));
  seen.errors = await words('#errors > li');
  seen.totals = Object.fromEntries(await page.locator('.totals div').evaluateAll(all => all.map(one => [one.children[0].textContent, one.children[1].textContent])));
  seen.state = await words('#state');
  await look('3-live');
  const cookies = await context.cookies();
  seen.cookies = cookies.map(({ name, httpOnly, sameSite, value }) => ({ name, httpOnly, sameSite, shows: value.includes(token) }));
  seen.readable = await page.evaluate(() => document.cookie);

  // by keyboard: Pause, then Sign out
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('Tab');
  seen.first = await focused();
  await page.keyboard.press('Enter');
  seen.paused = { state: await words('#state'), pressed: await page.locator('#pause').getAttribute('aria-pressed') };
  const before = await page.locator('#streams').innerText();
  await page.waitForTimeout(1500);
  seen.paused.same = before === await page.locator('#streams').innerText();
  await page.keyboard.press('Tab');
  seen.second = await focused();
  await page.keyboard.press('Enter');
  await page.locator('#token').waitFor();
  seen.left = (await context.cookies()).length;
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
