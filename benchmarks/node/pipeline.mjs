// One measurement of a pipeline in Node, as pipeline_jobs.py makes it: node pipeline.mjs FOLDER_OF_PACKAGES
//
// Standard input has {"workload", "tokens", "old", "new", "seconds"}, standard output gets
// {"cpu", "first", "text", "versions"}. CPU is that of the whole process, V8's own threads included.
// smoothStream cuts into words without a pause, in the place of the others' join.

import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const folder = path.resolve(process.argv[2])
const require = createRequire(path.join(folder, 'package.json'))
const { smoothStream } = await import(pathToFileURL(require.resolve('ai')).href)

const READ = 20 // tokens that arrive together

function source(tokens) {
  let next = 0
  return new ReadableStream({
    async pull(controller) {
      if (next % READ === 0) await new Promise(resolve => setImmediate(resolve))
      if (next < tokens.length) controller.enqueue({ type: 'text-delta', id: '0', text: tokens[next++] })
      else controller.close()
    },
  })
}

function replaced(old, by) {
  let held = ''
  return new TransformStream({
    transform(part, controller) {
      let text = (held + part.text).replaceAll(old, by)
      held = ''
      for (let size = Math.min(old.length - 1, text.length); size > 0; size -= 1) {
        if (old.startsWith(text.slice(-size))) {
          held = text.slice(-size)
          text = text.slice(0, -size)
          break
        }
      }
      if (text) controller.enqueue({ ...part, text })
    },
    flush(controller) {
      if (held) controller.enqueue({ type: 'text-delta', id: '0', text: held })
      controller.enqueue({ type: 'text-end', id: '0' }) // lets smoothStream's last word out
    },
  })
}

const passed = () => new TransformStream({
  transform(part, controller) { controller.enqueue(part) },
})

async function read(stream, seen) {
  let text = ''
  for await (const part of stream) {
    if (part.type !== 'text-delta') continue
    seen()
    text += part.text
  }
  return text
}

const unseen = () => {}

const JOBS = {
  async job({ tokens, old, new: by }, seen) {
    const smooth = smoothStream({ delayInMs: null, chunking: 'word' })({ tools: {} })
    const [first, second] = source(tokens).pipeThrough(replaced(old, by)).pipeThrough(smooth).tee()
    const [one, other] = await Promise.all([read(first, seen), read(second, unseen)])
    if (one !== other) throw new Error('the readers got different texts')
    return one
  },
  'one filter': ({ tokens }, seen) => read(source(tokens).pipeThrough(passed()), seen),
  'eight maps'({ tokens }, seen) {
    let stream = source(tokens)
    for (let count = 0; count < 8; count += 1) stream = stream.pipeThrough(passed())
    return read(stream, seen)
  },
}

function cpu() {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

let input = ''
for await (const chunk of process.stdin) input += chunk
const asked = JSON.parse(input)
const job = JOBS[asked.workload]
// Twice: V8 compiles what it has seen often.
await job(asked, unseen)
const text = await job(asked, unseen)
const firsts = []
const began = cpu()
let spent = 0
do {
  const start = performance.now()
  let first
  await job(asked, () => { first ??= performance.now() - start })
  firsts.push(first / 1e3)
  spent = cpu() - began
} while (spent < asked.seconds)
firsts.sort((left, right) => left - right)
const version = require(path.join(folder, 'node_modules', 'ai', 'package.json')).version
process.stdout.write(JSON.stringify({
  cpu: spent / firsts.length,
  first: firsts[Math.floor(firsts.length / 2)],
  text,
  versions: { node: process.versions.node, ai: version },
}))
