// Readers of streams in Node: node race.mjs FOLDER_OF_PACKAGES
//
// One JSON object a line on standard input, one on standard output:
//   {"load": KEY, "chunks": [BASE64, …]}                          -> {}
//   {"read": READER, "wire": WIRE, "body": KEY}                   -> {"text": …, "arguments": […]}
//   {"time": READER, "wire": WIRE, "body": KEY, "seconds": S}     -> {"seconds": CPU of one reading}
//   {"versions": true}                                            -> {NAME: VERSION, …}
// CPU is that of the whole process, V8's own threads included. Opening a stream is not counted.

import { createRequire } from 'node:module'
import path from 'node:path'
import readline from 'node:readline'
import { pathToFileURL } from 'node:url'

const folder = path.resolve(process.argv[2])
const require = createRequire(path.join(folder, 'package.json'))

async function load(name) {
  return import(pathToFileURL(require.resolve(name)).href)
}

globalThis.AI_SDK_LOG_WARNINGS = false // that it does not know the model `m`

const { createParser } = await load('eventsource-parser')

// --- eventsource-parser with JSON.parse ---

function sseEvents(chunks, keep) {
  const decoder = new TextDecoder()
  const parser = createParser({
    onEvent({ data }) {
      if (data !== '[DONE]') keep(JSON.parse(data))
    },
  })
  for (const chunk of chunks) parser.feed(decoder.decode(chunk, { stream: true }))
}

// What an application without an SDK writes: text and calls joined from the wire's own fields.
const JOINED = {
  messages(event, add) {
    const delta = event.delta
    if (event.type !== 'content_block_delta') return
    if (delta.type === 'text_delta') add.text(delta.text)
    if (delta.type === 'input_json_delta') add.call(event.index, delta.partial_json)
  },
  chat(event, add) {
    const delta = event.choices?.find(choice => !choice.index)?.delta
    if (delta?.content) add.text(delta.content)
    for (const call of delta?.tool_calls ?? []) add.call(call.index, call.function?.arguments ?? '')
  },
  responses(event, add) {
    if (event.type === 'response.output_text.delta') add.text(event.delta)
    if (event.type === 'response.function_call_arguments.delta') {
      add.call(event.output_index, event.delta)
    }
  },
  gemini(event, add) {
    for (const part of event.candidates?.[0]?.content?.parts ?? []) {
      if (part.functionCall) add.parsed(part.functionCall.args)
      else if (!part.thought) add.text(part.text ?? '')
    }
  },
  interactions(event, add) {
    if (event.event_type !== 'step.delta') return
    if (event.delta.type === 'text') add.text(event.delta.text)
    if (event.delta.type === 'arguments_delta') add.call(event.index, event.delta.arguments)
  },
  cohere(event, add) {
    const message = event.delta?.message
    if (event.type === 'content-delta') add.text(message.content.text ?? '')
    if (event.type === 'tool-plan-delta') add.text(message.tool_plan)
    if (event.type === 'tool-call-delta') add.call(event.index, message.tool_calls.function.arguments)
  },
}

class Joined {
  text_ = ''
  calls = new Map()
  parsed_ = []

  text(text) {
    this.text_ += text
  }

  call(key, text) {
    this.calls.set(key, (this.calls.get(key) ?? '') + text)
  }

  parsed(value) {
    this.parsed_.push(value)
  }

  outcome() {
    const texts = [...this.calls.values()]
    return { text: this.text_, arguments: [...texts.map(text => JSON.parse(text || '{}')), ...this.parsed_] }
  }
}

// --- Vercel's AI SDK ---

const PROVIDERS = {
  messages: ['@ai-sdk/anthropic', 'createAnthropic', provider => provider('m')],
  chat: ['@ai-sdk/openai', 'createOpenAI', provider => provider.chat('m')],
  responses: ['@ai-sdk/openai', 'createOpenAI', provider => provider.responses('m')],
  gemini: ['@ai-sdk/google', 'createGoogle', provider => provider('m')],
  cohere: ['@ai-sdk/cohere', 'createCohere', provider => provider('m')],
  converse: ['@ai-sdk/amazon-bedrock', 'createAmazonBedrock', provider => provider('m')],
}

async function model(wire, chunks) {
  const [name, create, select] = PROVIDERS[wire]
  const module = await load(name)
  const type = wire === 'converse' ? 'application/vnd.amazon.eventstream' : 'text/event-stream'
  // Pulled: no chunk is read before somebody asks for it.
  const body = () => {
    let next = 0
    return new ReadableStream({
      pull(controller) {
        if (next < chunks.length) controller.enqueue(chunks[next++])
        else controller.close()
      },
    }, { highWaterMark: 0 })
  }
  const fetch = async () => new Response(body(), { headers: { 'content-type': type } })
  return select(module[create]({ fetch, apiKey: 'none', region: 'x' }))
}

const PROMPT = [{ role: 'user', content: [{ type: 'text', text: 'x' }] }]

async function openParts(wire, chunks) {
  const { stream } = await (await model(wire, chunks)).doStream({ prompt: PROMPT })
  return stream
}

// --- the readers: `open` is not counted, `run` is ---

const READERS = {
  'eventsource-parser': {
    open: (wire, chunks) => chunks,
    run: chunks => {
      let events = 0
      sseEvents(chunks, () => { events += 1 })
    },
  },
  'vercel': {
    open: openParts,
    run: async stream => {
      for await (const _ of stream);
    },
  },
}

async function outcome(name, wire, chunks) {
  if (name === 'vercel') {
    let text = ''
    const calls = []
    for await (const part of await openParts(wire, chunks)) {
      if (part.type === 'error') throw part.error
      if (part.type === 'text-delta') text += part.delta
      if (part.type === 'tool-call') calls.push(JSON.parse(part.input || '{}'))
    }
    return { text, arguments: calls }
  }
  const joined = new Joined()
  sseEvents(chunks, event => JOINED[wire](event, joined))
  return joined.outcome()
}

const TOGETHER = 10

function cpu() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

/** CPU seconds of one reading: the mean of as many as fill the time. */
async function seconds(name, wire, chunks, least) {
  const reader = READERS[name]
  let spent = 0
  let runs = 0
  do {
    // Several at a time: the clock counts microseconds, and a short stream takes ten.
    const opened = []
    while (opened.length < TOGETHER) opened.push(await reader.open(wire, chunks))
    const start = cpu()
    for (const one of opened) await reader.run(one)
    spent += cpu() - start
    runs += TOGETHER
  } while (spent < least)
  return spent / runs
}

function versions() {
  const { dependencies } = require('./package.json')
  const found = { node: process.versions.node }
  for (const name of Object.keys(dependencies)) {
    found[name] = require(path.join(folder, 'node_modules', name, 'package.json')).version
  }
  return found
}

const bodies = new Map()

async function respond(asked) {
  if (asked.versions) return versions()
  if (asked.load !== undefined) {
    bodies.set(asked.load, asked.chunks.map(chunk => new Uint8Array(Buffer.from(chunk, 'base64'))))
    return {}
  }
  const chunks = bodies.get(asked.body)
  if (asked.read) return outcome(asked.read, asked.wire, chunks)
  return { seconds: await seconds(asked.time, asked.wire, chunks, asked.seconds) }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  let reply
  try {
    reply = await respond(JSON.parse(line))
  } catch (error) {
    reply = { error: String(error?.stack ?? error) }
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`)
}
