// Uses pages of the inspector in headless Chromium, by keyboard, and says what was on the screen.
//
//   node inspector_page.mjs HOME CHROMIUM PICTURES     HOME: where playwright-core is installed
//   stdin    {"task": NAME, "pages": {NAME: PATH}, …}  what a task needs besides is said at it
//   stdout   one JSON object: what was seen

import { text } from 'node:stream/consumers';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [home, executablePath, pictures] = process.argv.slice(2);
const { chromium } = createRequire(join(home, 'package.json'))('playwright-core');
const asked = JSON.parse(await text(process.stdin));

const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const browser = await chromium.launch({ executablePath, args: QUIET });
const seen = { complaints: [], foreign: [], dialogs: [] };

async function open(
  name,
  { scheme = 'light', phone = false, hash = '', motion = 'no-preference' } = {},
) {
  const viewport = phone ? { width: 400, height: 844 } : { width: 1280, height: 900 };
  const context = await browser.newContext({
    viewport,
    colorScheme: scheme,
    reducedMotion: motion,
    isMobile: phone,
    hasTouch: phone,
    deviceScaleFactor: 1,
  });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type())) seen.complaints.push(message.text());
  });
  page.on('pageerror', error => seen.complaints.push(String(error)));
  page.on('dialog', dialog => {
    seen.dialogs.push(dialog.message());
    dialog.dismiss();
  });
  page.on('request', request => {
    if (!/^(file|blob|data):/.test(request.url())) seen.foreign.push(request.url());
  });
  await page.goto(pathToFileURL(asked.pages[name]).href + hash);
  await page.waitForFunction(() => document.getElementById('state')?.textContent !== 'Reading …');
  return page;
}

const texts = async (page, selector) =>
  (await page.locator(selector).allInnerTexts()).map(one => one.trim());
const textOf = (page, selector) => page.locator(selector).innerText();
const frameOf = page => page.evaluate(() => position.frame);

// Texts below the contrast of WCAG AA (4.5 to 1) against what is behind them, in the drawing too.
const faintTexts = page =>
  page.evaluate(() => {
    const rgb = value => value.match(/[\d.]+/g).map(Number);
    const light = ([r, g, b]) => {
      const part = value =>
        (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const behind = node => {
      for (; node; node = node.parentElement) {
        const colour = rgb(getComputedStyle(node).backgroundColor);
        if (colour.length === 3 || colour[3] > 0) return colour;
      }
      return [255, 255, 255];
    };
    const found = [];
    for (const node of document.querySelectorAll('body *')) {
      const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
      if (!own || !node.checkVisibility() || node.closest('noscript, script, style, title, option'))
        continue;
      const style = getComputedStyle(node);
      const colour = node instanceof SVGElement ? style.fill : style.color;
      const [one, two] = [light(rgb(colour)), light(behind(node))].sort((a, b) => b - a);
      const contrast = (one + 0.05) / (two + 0.05);
      if (contrast < 4.5)
        found.push(`${node.tagName} ${node.textContent.slice(0, 20)} ${contrast.toFixed(2)}`);
    }
    return found;
  });

const tasks = {
  // Each page, light and dark, on a desktop and on a phone: {"looks": [[scheme, phone]]}
  async looks() {
    seen.faint = [];
    seen.wide = [];
    for (const name of Object.keys(asked.pages)) {
      for (const [scheme, phone] of asked.looks) {
        const page = await open(name, { scheme, phone });
        const look = `${name}-${scheme}${phone ? '-phone' : ''}`;
        seen.faint.push(...(await faintTexts(page)).map(one => `${look}: ${one}`));
        const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (width > 0) seen.wide.push(`${look}: ${width} px`);
        await page.screenshot({ path: join(pictures, `inspector-${look}.png`), fullPage: true });
        await page.context().close();
      }
    }
  },

  // What the page says at every frame: {"page": NAME}
  async frames() {
    const page = await open(asked.page);
    seen.verdict = await textOf(page, '#verdict');
    seen.about = await textOf(page, '#about');
    seen.findings = await texts(page, '#findings > li');
    seen.privacy = await textOf(page, '#privacy');
    seen.cards = Object.fromEntries(
      await page
        .locator('#cards > div')
        .evaluateAll(all =>
          all.map(one => [one.children[0].textContent, one.children[1].innerText]),
        ),
    );
    seen.lanes = await page
      .locator('#timeline text.soft')
      .evaluateAll(all => all.map(one => one.firstChild.textContent));
    seen.bars = await page
      .locator('#timeline rect.bar')
      .evaluateAll(all => all.map(one => one.getAttribute('class')));
    seen.notes = await page
      .locator('#timeline text.note')
      .evaluateAll(all => all.map(one => one.textContent));
    seen.unusual = await textOf(page, '#unusual');
    const last = await page.evaluate(() => position.model.lastFrame);
    await page.keyboard.press('Home');
    seen.states = [];
    for (let frame = 0; frame <= last; frame++) {
      const items = await page.locator('#items > article').evaluateAll(all =>
        all.map(one => ({
          title: one.querySelector('h3').innerText,
          texts: [...one.querySelectorAll('pre bdi')]
            .filter(text => text.checkVisibility())
            .map(text => text.textContent),
          tree: [...one.querySelectorAll('.tree li')].map(entry => entry.innerText),
        })),
      );
      const bytes = await page.locator('#frame').evaluate(panel => panel.textContent);
      seen.states.push({
        frame: await frameOf(page),
        where: await textOf(page, '#where'),
        sum: await textOf(page, '#sum'),
        items,
        bytes,
      });
      await page.keyboard.press('j');
    }
  },

  // Everything by keyboard: {"page": NAME}
  async keyboard() {
    const page = await open(asked.page, { hash: '#frame=3' });
    const press = async (...keys) => {
      for (const key of keys) await page.keyboard.press(key);
      return frameOf(page);
    };
    seen.opened = await frameOf(page);
    seen.steps = {
      right: await press('ArrowRight'),
      left: await press('ArrowLeft'),
      j: await press('j'),
      k: await press('k'),
      ten: await press('Shift+ArrowRight'),
      home: await press('Home'),
      end: await press('End'),
    };
    await press('Home', 'ArrowRight');
    await page.waitForFunction(() => location.hash === '#frame=1');
    seen.address = await page.evaluate(() => location.hash);

    // stops of the Tab key, each with an outline
    seen.stops = [];
    await page.evaluate(() => document.activeElement.blur());
    for (let stop = 0; stop < 60; stop++) {
      await press('Tab');
      const at = await page.evaluate(() => {
        const node = document.activeElement;
        if (node === document.body) return null;
        const { outlineStyle, outlineWidth } = getComputedStyle(node);
        return {
          name: node.id || node.textContent.trim().slice(0, 30),
          outline: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
        };
      });
      if (at === null) break;
      seen.stops.push(at);
    }

    // filter
    await page.evaluate(() => document.activeElement.blur());
    await press('/');
    await page.keyboard.type(asked.filter);
    seen.filtered = {
      matches: await textOf(page, '#matches'),
      rows: await texts(page, '#frames .body .row'),
    };
    await press('Escape');
    seen.unfiltered = await textOf(page, '#matches');
    seen.focus = await page.evaluate(() => document.activeElement.id);

    // rows of the table: fold and unfold
    const rows = () => page.locator('#frames').getAttribute('aria-rowcount');
    await press('Home');
    const folded = page.locator('#frames .row', { has: page.locator('.fold') }).first();
    await folded.click();
    seen.folded = Number(await rows());
    await press('Enter');
    seen.unfolded = Number(await rows());
    seen.active = await page.locator('#frames .chosen').innerText();
    await press('ArrowDown', 'ArrowDown');
    seen.below = await frameOf(page);
    await press('ArrowUp', 'ArrowUp', 'Enter');
    seen.refolded = Number(await rows());

    // the tabs of a frame, other chunks, the keys
    await page.locator('#tabs [aria-selected=true]').focus();
    seen.tabs = [];
    for (let tab = 0; tab < 4; tab++) {
      seen.tabs.push([
        await page.locator('#tabs [aria-selected=true]').innerText(),
        await page.locator('#frame').innerText(),
      ]);
      await press('ArrowRight');
    }
    seen.splits = [];
    await page.evaluate(() => document.activeElement.blur());
    for (let split = 0; split < asked.splits; split++) {
      seen.splits.push(await textOf(page, '#same'));
      await press(']');
    }
    seen.tried = await textOf(page, '#split-borders');
    await press('?');
    seen.help = await page.evaluate(() => document.getElementById('keys').open);
    await page.locator('#keys-on').uncheck();
    await press('Escape', 'Home');
    const still = await frameOf(page);
    seen.off = still === (await press('j'));
    await press('?');
    seen.help_off = await page.evaluate(() => document.getElementById('keys').open);
    await page.evaluate(() => {
      document.getElementById('keys-on').checked = true;
    });

    // playing to the end
    await page.locator('#speed').selectOption('0.1');
    await page.evaluate(() => document.activeElement.blur());
    await press('Home', ' ');
    seen.playing = await page.locator('#play').getAttribute('aria-pressed');
    await page.locator('#speed').selectOption('64');
    await page.waitForFunction(() => position.frame === position.model.lastFrame);
    seen.played = await page.locator('#play').textContent();

    // a finding leads to its frame
    await press('Home');
    await page.locator('#findings a').last().focus();
    await press('Enter');
    seen.led = {
      frame: await frameOf(page),
      focus: await page.evaluate(() => document.activeElement.id),
    };
  },

  // A request of any size: {"pages": {NAME: PATH}}
  async requests() {
    seen.requests = {};
    for (const name of Object.keys(asked.pages)) {
      const page = await open(name);
      const content = page.locator('#unusual details pre');
      const closed = await content.evaluate(node => node.textContent.length);
      const start = Date.now();
      await page.locator('#unusual summary').click();
      await page.waitForFunction(() => document.querySelector('#unusual pre').textContent);
      const opened = await content.evaluate(node => node.textContent);
      const elapsed = Date.now() - start;
      seen.requests[name] = { closed, elapsed, size: opened.length, end: opened.slice(-60) };
      await page.context().close();
    }
  },

  // Whether each way to another frame stops playing; keys in a table without rows: {"page": NAME}
  async playing() {
    const page = await open(asked.page);
    const isPlaying = () => page.evaluate(() => play.isOn);
    const timeline = await page.locator('#timeline svg').first().boundingBox();
    const ways = {
      pointer: () => page.mouse.click(timeline.x + timeline.width / 2, timeline.y + 30),
      address: async () => {
        await page.evaluate(() => (location.hash = '#frame=2'));
        await page.waitForFunction(() => !play.isOn, null, { timeout: 2000 }).catch(() => {});
      },
      filter: () => page.locator('#filter').fill(asked.filter),
    };
    await page.locator('#speed').selectOption('0.1');
    seen.stopped = {};
    for (const [way, go] of Object.entries(ways)) {
      await page.evaluate(() => {
        play.stop();
        position.set(0);
        play.toggle();
      });
      seen.started = await isPlaying();
      await go();
      seen.stopped[way] = !(await isPlaying());
    }
    await page.locator('#filter').fill('no frame has this');
    await page.locator('#frames').focus();
    const before = await frameOf(page);
    for (const key of ['ArrowDown', 'Enter', 'PageUp']) await page.keyboard.press(key);
    seen.moved = (await frameOf(page)) - before;
  },

  // Milliseconds until everything is shown, the best of three, and of each step: {"page": NAME}
  async speed() {
    seen.opened = [];
    for (let round = 0; round < 3; round++) {
      const page = await open(asked.page);
      seen.opened.push(
        await page.evaluate(() => performance.getEntriesByName('shown')[0].startTime),
      );
      seen.elements = await page.evaluate(() => document.querySelectorAll('*').length);
      seen.steps = await page.evaluate(() => {
        const times = [];
        const { lastFrame } = position.model;
        for (let step = 0; step < 400; step++) {
          const start = performance.now();
          position.set(Math.round(lastFrame * (step < 200 ? 0.4 + step / lastFrame : step / 400)));
          document.body.getBoundingClientRect(); // with its layout
          times.push(performance.now() - start);
        }
        return times.sort((a, b) => a - b);
      });
      seen.filter = await page.evaluate(() => {
        const start = performance.now();
        document.getElementById('filter').value = '7';
        document.getElementById('filter').dispatchEvent(new Event('input'));
        document.body.getBoundingClientRect();
        return performance.now() - start;
      });
      await page.context().close();
    }
  },

  // What a hostile recording did: {"page": NAME}
  async hostile() {
    const page = await open(asked.page);
    await page.keyboard.press('Home');
    seen.text = '';
    for (let frame = 0; frame <= (await page.evaluate(() => position.model.lastFrame)); frame++) {
      for (const tab of ['Bytes', 'Hex', 'JSON', 'Events']) {
        await page.getByRole('tab', { name: tab }).click();
        seen.text += await page.evaluate(() => document.body.innerText + document.title);
      }
      await page.keyboard.press('j');
    }
    seen.hit = await page.evaluate(() => window.hit ?? null);
    seen.made = await page.evaluate(() =>
      ['img', 'iframe', 'a:not([href^="#frame="])', 'script:not([data-part])'].map(
        name => document.querySelectorAll(name).length,
      ),
    );
    seen.attributes = await page.evaluate(() =>
      [...document.querySelectorAll('*')]
        .flatMap(node => [...node.attributes])
        .filter(one => /^(on|style|src)/.test(one.name) && one.name !== 'style')
        .map(one => one.name),
    );
    const before = seen.complaints.length;
    seen.blocked = await page.evaluate(async () => {
      const script = document.createElement('script');
      script.textContent = 'window.hit = 4';
      document.body.append(script);
      const load = await fetch('https://example.invalid/').then(
        () => 'loaded',
        error => error.name,
      );
      return { hit: window.hit ?? null, load };
    });
    seen.complaints.splice(before); // those of the two lines above are meant
  },

  // Two responses: {"page": NAME}
  async difference() {
    const page = await open(asked.page);
    seen.first = await textOf(page, '#first-difference');
    seen.rows = await page
      .locator('#differences .body .row')
      .evaluateAll(all => all.map(row => [...row.children].map(cell => cell.innerText)));
    await page.locator('#only-different').check();
    seen.different = await page.locator('#differences .body .row').count();
    await page.locator('#differences').focus();
    await page.keyboard.press('PageUp');
    seen.frame = await frameOf(page);
    seen.responses = await texts(page, '#responses option');
    await page.locator('#responses').selectOption('1');
    await page.waitForFunction(() => position.model === models.get(1));
    seen.name = await textOf(page, '#name');
  },

  // What a phone reads of the timeline and of the difference: {"page": NAME}
  async narrow() {
    const page = await open(asked.page, { phone: true });
    seen.timeline = await page
      .locator('#timeline > svg > text')
      .evaluateAll(all => all.map(text => text.firstChild.data));
    seen.titles = await texts(page, '#differences .titles > :visible');
  },

  // Less motion, playing from a frame on: {"page": NAME, "frame": NUMBER}
  async motion() {
    seen.animations = {};
    for (const motion of ['reduce', 'no-preference']) {
      const page = await open(asked.page, { motion });
      await page.evaluate(frame => position.set(frame), asked.frame);
      seen.animations[motion] = await page.evaluate(() => document.getAnimations().length);
      seen[motion] = await page.evaluate(
        frame =>
          new Promise(resolve => {
            position.set(frame);
            let steps = 0;
            const set = position.set;
            position.set = function (next) {
              steps += 1;
              set.call(this, next);
            };
            play.toggle();
            setTimeout(() => resolve(steps), 1600);
          }),
        asked.frame,
      );
      await page.context().close();
    }
  },

  // The page in a frame that has no address, as in a notebook: {"page": NAME}
  async notebook() {
    const page = await open(asked.page);
    const frame = page.frameLocator('iframe');
    await frame.locator('#findings a').last().click();
    seen.where = await frame.locator('#where').innerText();
    await page.waitForTimeout(500); // the address would be written by now
    seen.name = await frame.locator('#name').innerText();
    seen.frames = page.frames().map(each => each.url()).slice(1);
  },

  // The values that the tree of growing arguments is drawn from: {"page": NAME, "texts": [TEXT]}
  async partial() {
    const page = await open(asked.page);
    seen.values = await page.evaluate(texts => {
      const valueOf = node => {
        if (!node.entries) return JSON.parse(node.text);
        const values = node.entries.map(([key, value]) => [key, valueOf(value)]);
        return node.isArray ? values.map(([, value]) => value) : Object.fromEntries(values);
      };
      return texts.map(text => partialJson(text).map(([, root]) => valueOf(root))[0] ?? null);
    }, asked.texts);
  },

  // The pictures of the docs, as WebP in base64: {"views": {NAME: {scheme, phone, height}}}
  async pictures() {
    seen.pictures = {};
    for (const [name, { scheme, phone, height }] of Object.entries(asked.views)) {
      const page = await open(name, { scheme, phone });
      const { width } = page.viewportSize();
      await page.setViewportSize({ width, height });
      await page.waitForTimeout(300); // the timeline is drawn anew
      const png = (await page.screenshot({ animations: 'disabled' })).toString('base64');
      const blank = await page.context().newPage();
      // Chromium writes WebP, which playwright does not.
      const webp = await blank.evaluate(async source => {
        const image = new Image();
        image.src = `data:image/png;base64,${source}`;
        await image.decode();
        const canvas = document.createElement('canvas');
        canvas.width = image.width;
        canvas.height = image.height;
        canvas.getContext('2d').drawImage(image, 0, 0);
        return canvas.toDataURL('image/webp', 0.7);
      }, png);
      seen.pictures[name] = webp.split(',')[1];
      await page.context().close();
    }
  },
};

try {
  await tasks[asked.task]();
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
