// Reads pages of the documentation site in headless Chromium, by eye and by keyboard, and says what was seen.
//
//   node site_pages.mjs HOME CHROMIUM PICTURES     HOME: where playwright-core is installed; PICTURES: a folder for screenshots
//   stdin    {"url": URL, "pages": [PATH], "words": [what is searched], "scheme": "light" | "dark", "width": PIXELS}
//   stdout   one JSON object: what was seen

import { text } from 'node:stream/consumers';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [home, executablePath, pictures] = process.argv.slice(2);
const { chromium } = createRequire(join(home, 'package.json'))('playwright-core');
const { url, pages, words, scheme, width } = JSON.parse(await text(process.stdin));
const TABS = 40;

const QUIET = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath, args: QUIET });
const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme, reducedMotion: 'reduce' });
context.setDefaultTimeout(10_000);
const seen = { complaints: [], foreign: [], faint: [], wide: [], cut: [], broken: [], stops: {}, unseen: [], texts: 0, scheme: [], stills: [], search: {}, landed: {} };

const page = await context.newPage();
page.on('console', message => { if (message.type() === 'error') seen.complaints.push(message.text()); });
page.on('pageerror', error => seen.complaints.push(String(error)));
page.on('requestfailed', request => seen.complaints.push(request.url()));
page.on('request', request => { if (!request.url().startsWith(url)) seen.foreign.push(request.url()); });

// Texts whose contrast is below what WCAG AA asks: 4.5 to 1, 3 to 1 where they are large.
const contrasts = () => page.evaluate(() => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const paint = canvas.getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const rgba = color => {
    if (!known.has(color)) {
      paint.clearRect(0, 0, 1, 1);
      paint.fillStyle = color;
      paint.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data;
      known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3]));
  const light = rgb => {
    const part = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(rgb[0]) + 0.7152 * part(rgb[1]) + 0.0722 * part(rgb[2]);
  };
  const behind = node => {
    const layers = [];
    for (; node; node = node.parentElement) {
      const color = rgba(getComputedStyle(node).backgroundColor);
      if (color[3] > 0) layers.push(color);
      if (color[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
  };
  const opacity = node => {
    let value = 1;
    for (; node; node = node.parentElement) value *= Number(getComputedStyle(node).opacity);
    return value;
  };
  const faint = [];
  let texts = 0;
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
    const box = node.getBoundingClientRect();
    if (!own || !box.width || !node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (node.closest('script, style, template, [aria-hidden=true]')) continue;
    texts += 1;
    const style = getComputedStyle(node);
    const below = behind(node);
    const color = [...rgba(style.color)];
    color[3] *= opacity(node);
    const [one, two] = [light(over(color, below)), light(below)].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (two + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (contrast < (isLarge ? 3 : 4.5)) {
      faint.push(`${node.tagName}.${node.className} ${node.textContent.trim().slice(0, 20)} ${style.color} ${contrast.toFixed(2)}`);
    }
  }
  return { faint, texts };
});

// Where the focus is, and whether it can be seen: a style that the element has not without it.
const focus = () => page.evaluate(() => {
  const node = document.activeElement;
  if (!node || node === document.body) return null;
  const LOOKS = ['outlineStyle', 'outlineWidth', 'outlineColor', 'boxShadow', 'backgroundColor', 'color', 'borderColor', 'textDecorationLine', 'opacity', 'transform'];
  // The switch of colours is inputs that cannot be seen, and a label that can.
  const shown = node.matches('.md-option') ? node.parentElement.querySelector('label:not([hidden])') : node;
  const look = () => LOOKS.map(name => getComputedStyle(shown)[name]).join();
  const regions = { header: '.md-header', tabs: '.md-tabs', navigation: '.md-sidebar--primary', contents: '.md-sidebar--secondary', content: '.md-content', footer: '.md-footer' };
  const region = Object.keys(regions).find(name => node.closest(regions[name])) ?? 'page';
  const label = (node.getAttribute('aria-label') || node.title || node.textContent).trim().slice(0, 30);
  const focused = look();
  node.blur();
  const blurred = look();
  node.focus({ focusVisible: true });
  const box = shown.getBoundingClientRect();
  const isOnScreen = box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight;
  return { region, label, tag: node.tagName, shown: isOnScreen && focused !== blurred };
});

// What stands in the field of the search; null where the focus is elsewhere.
const searching = () => page.evaluate(() => {
  const node = document.activeElement?.shadowRoot?.activeElement ?? document.activeElement;
  return node?.matches('input:not(.md-option)') ? { value: node.value } : null;
});

try {
  for (const path of pages) {
    await page.goto(url + path);
    await page.locator('.md-content h1').first().waitFor();
    await page.waitForTimeout(500);
    const { faint, texts } = await contrasts();
    seen.faint.push(...faint.map(one => `${path}: ${one}`));
    seen.texts += texts;
    seen.scheme.push(await page.evaluate(() => document.body.dataset.mdColorScheme));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) seen.wide.push(`${path}: ${wide}`);
    const cut = await page.evaluate(() => [...document.querySelectorAll('.md-content table')].map(table => table.scrollWidth - table.closest('.md-typeset__scrollwrap, article').clientWidth));
    seen.cut.push(...cut.filter(pixels => pixels > 0).map(pixels => `${path}: ${pixels}`));
    const broken = await page.evaluate(() => [...document.querySelectorAll('.md-content td:first-child > code')].filter(code => !/[\s()]/.test(code.textContent) && code.getClientRects().length > 1).map(code => code.textContent));
    seen.broken.push(...broken.map(name => `${path}: ${name}`));
    seen.stills.push(...await page.evaluate(() => [...document.querySelectorAll('picture img')].map(image => image.currentSrc.split('/').pop())));
    await page.screenshot({ path: join(pictures, `site-${path.replace(/\W+/g, '-')}-${scheme}-${width}.png`) });

    await page.addStyleTag({ content: '* { transition: none !important; }' }); // what slides in is there at once
    seen.stops[path] = [];
    for (let count = 0; count < TABS; count += 1) {
      await page.keyboard.press('Tab');
      const stop = await focus();
      if (stop === null) break;
      if (!stop.shown) seen.unseen.push(`${path}: ${stop.region} ${stop.tag} ${stop.label}`);
      seen.stops[path].push(`${stop.region}: ${stop.label}`);
    }
  }

  // search, by keyboard
  for (const word of words) {
    await page.goto(`${url}index.html`);
    await page.locator('.md-content h1').first().waitFor();
    for (let count = 0; count < 20 && !(await searching()); count += 1) {
      await page.keyboard.press('Control+k');
      await page.waitForTimeout(500); // the page's script may have come after the key
    }
    await page.keyboard.type(word, { delay: 20 });
    await page.waitForTimeout(2500);
    seen.search[word] = await searching();
    await page.screenshot({ path: join(pictures, `site-search-${word}-${scheme}-${width}.png`) });
    await page.keyboard.press('Enter');
    await page.waitForTimeout(1000);
    seen.landed[word] = page.url();
  }
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
