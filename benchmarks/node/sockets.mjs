// One measurement over sockets in Node: node sockets.mjs FOLDER URL READER STREAMS DELTAS PACE GROUP
//
// The same as `benchmarks/socket_run.py`: all streams are opened and get their first event, then the
// server goes on. Prints {"setup": CPU µs, "rest": CPU µs, "memory": bytes, "texts": [SHA1, …]}; of
// all streams together.

import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const [folder, url, reader, streams, deltas, pace, group] = process.argv.slice(2)
const require = createRequire(path.join(path.resolve(folder), 'package.json'))

async function load(name) {
  return import(pathToFileURL(require.resolve(name)).href)
}

globalThis.AI_SDK_LOG_WARNINGS = false
const { createParser } = await load('eventsource-parser')
const ai = await load('ai')
const { createAnthropic } = await load('@ai-sdk/anthropic')

const READERS = {
  async 'eventsource-parser'(url, onOpen) {
    const response = await fetch(url, { method: 'POST', body: '{}' })
    const decoder = new TextDecoder()
    const texts = []
    let opened = false
    const parser = createParser({
      onEvent({ data }) {
        const event = JSON.parse(data)
        if (event.type === 'content_block_delta') texts.push(event.delta.text)
        if (!opened) onOpen()
        opened = true
      },
    })
    for await (const chunk of response.body) parser.feed(decoder.decode(chunk, { stream: true }))
    return texts.join('')
  },
  async 'vercel'(url, onOpen) {
    // What the provider appends to the path is ignored by the server.
    const model = createAnthropic({ baseURL: url, apiKey: 'none' })('m')
    const options = { prompt: 'x', maxOutputTokens: 9, onError({ error }) { throw error } }
    const result = ai.streamText({ model, ...options })
    let opened = false
    for await (const part of result.fullStream) {
      // `start` comes before the response, `start-step` with it; text only after the first event.
      if (!opened && part.type === 'start-step') {
        opened = true
        onOpen()
      }
    }
    return result.text
  },
}

function cpu() {
  const { user, system } = process.cpuUsage()
  return user + system
}

async function go(group) {
  await (await fetch(`${url}/go/${group}`, { method: 'POST' })).arrayBuffer()
}

const read = READERS[reader]
await go(`${group}warm`)
for (let warm = 0; warm < 5; warm += 1) {
  await read(`${url}/messages/200/0/${group}warm`, () => {})
}

let waiting = Number(streams)
let allOpen
const opened = new Promise(resolve => { allOpen = resolve })
const memory = process.memoryUsage().rss
const start = cpu()
const reading = []
for (let number = 0; number < Number(streams); number += 1) {
  reading.push(read(`${url}/messages/${deltas}/${pace}/${group}`, () => {
    waiting -= 1
    if (!waiting) allOpen()
  }))
}
await opened
const resumed = cpu()
const held = process.memoryUsage().rss - memory
await go(group)
const texts = await Promise.all(reading)
const ended = cpu()
const hashes = [...new Set(texts.map(text => createHash('sha1').update(text).digest('hex')))]
console.log(JSON.stringify({ setup: resumed - start, rest: ended - resumed, memory: held, texts: hashes }))
process.exit(0) // undici keeps connections open
