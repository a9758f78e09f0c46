// Uses the complete chat behind a proxy, in headless Chromium, while one of its servers dies, and says what was on the screen.
//
//   node complete_chat.mjs HOME CHROMIUM     HOME: where playwright-core is installed
//   stdin    {"proxy": URL}, then a line whenever a step was done
//   stdout   {"step": …} for what is to be done, then one JSON object: what was seen

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const [home, executablePath] = process.argv.slice(2);
const { chromium } = createRequire(join(home, 'package.json'))('playwright-core');
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { proxy } = JSON.parse((await lines.next()).value);

const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath, args });
const seen = { errors: [] };

async function open(url, username, password) {
  const context = await browser.newContext({ httpCredentials: { username, password } });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  page.on('pageerror', error => seen.errors.push(String(error)));
  await page.goto(url);
  return page;
}

async function ready(step) {
  console.log(JSON.stringify({ step }));
  await lines.next();
}

async function say(page, words) {
  await page.getByLabel('Message').fill(words);
  await page.keyboard.press('Enter');
}

const press = (page, label) => page.getByRole('button', { name: label, exact: true }).click();
const idle = page => page.locator('#log[aria-busy=false]').waitFor();
const tool = page => page.locator('.tool').last().getAttribute('data-state');
const words = async page => (await page.locator('#log').innerText()).replaceAll('\n', ' ');
const says = page => page.waitForFunction(() => [...document.querySelectorAll('.text')].at(-1)?.innerText.startsWith('The tool says: B'));

try {
  const page = await open(proxy, 'alice', 'wonderland');
  await say(page, 'A trip');
  await page.getByRole('button', { name: 'Allow', exact: true }).waitFor();
  await page.reload(); // the approval is still asked for
  seen.asked = { state: await page.locator('.tool').last().getAttribute('data-state', { timeout: 5000 }), ran: (await words(page)).includes('Booked') };
  await press(page, 'Allow');
  await says(page);
  await page.reload(); // in the middle: resumed
  await page.waitForFunction(() => document.querySelector('#log')?.innerText.includes('in Lisbon.'));
  await idle(page);
  seen.allowed = { state: await tool(page), text: await words(page), messages: await page.locator('article').count() };

  await say(page, 'Another trip');
  await press(page, 'Do not allow');
  await page.waitForFunction(() => document.querySelector('#log')?.innerText.includes('did not allow'));
  await idle(page);
  seen.denied = { state: await tool(page), booked: (await words(page)).split('Booked').length - 1 };

  const stranger = await open(page.url(), 'bob', 'builder');
  await stranger.waitForTimeout(500);
  seen.stranger = await stranger.locator('article').count();
  seen.errors = seen.errors.filter(error => !error.includes('map')); // its chat could not be read
  await stranger.close();

  await say(page, 'A third trip');
  await press(page, 'Allow');
  await says(page);
  await press(page, 'Stop');
  await idle(page);
  seen.stopped = { cut: !(await page.locator('.text').last().innerText()).includes('Lisbon.') };

  await say(page, 'The last trip');
  await press(page, 'Allow');
  await says(page);
  await ready('kill'); // the server that writes
  await page.reload(); // the other one: what came is there, and has an end
  await says(page);
  await idle(page);
  seen.killed = { kept: (await words(page)).split('Booked').length > 4, messages: await page.locator('article').count() };
} catch (error) {
  seen.failure = String(error);
  seen.shown = await browser.contexts()[0].pages()[0].locator('body').innerHTML();
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
process.exit(0);
