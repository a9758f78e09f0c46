// One request through Vercel's AI SDK: `node vercel_ai.mjs URL WIRE RETRIES leave|stay|replay`.
// Writes one line of JSON, what its user received; vercel_ai.py copies it beside the packages and reads that line.
import { AISDKError, jsonSchema, streamText, tool } from "ai";

const [url, wire, retries, mode] = process.argv.slice(2);
const SILENCE = 1000; // milliseconds of silence that every library is told to allow
const TOOLS = ["f", "g"];
const FAILURES = ["error", "interrupted"]; // reasons by which the library says that the response is not complete

async function model() {
  const apiKey = "k-1";
  switch (wire) {
    case "messages": {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      return createAnthropic({ baseURL: `${url}/v1`, apiKey })("claude-sonnet-4-5");
    }
    case "chat": {
      const { createOpenAI } = await import("@ai-sdk/openai");
      return createOpenAI({ baseURL: `${url}/v1`, apiKey }).chat("m-1");
    }
    case "responses": {
      const { createOpenAI } = await import("@ai-sdk/openai");
      return createOpenAI({ baseURL: `${url}/v1`, apiKey }).responses("m-1");
    }
    case "gemini": {
      const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
      return createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey })("gemini-2.5-flash");
    }
    case "converse": {
      const { createAmazonBedrock } = await import("@ai-sdk/amazon-bedrock");
      const keys = { accessKeyId: "AK", secretAccessKey: "s", region: "us-east-1" };
      return createAmazonBedrock({ baseURL: url, ...keys })("us.amazon.nova-lite-v1:0");
    }
  }
  throw new Error(`no such wire: ${wire}`);
}

const told = { text: "", reasoning: "", calls: [], order: [], signatures: [], ended: "whole", own: true, error: "" };

// A part begins, unless one of that kind is open; a call is always a part of its own.
function keep(kind) {
  if (told.order.at(-1) !== kind || kind === "call") told.order.push(kind);
}

// A signature may come with a delta, the end of a part, or a call: each once.
function sign(part) {
  for (const values of Object.values(part.providerMetadata ?? {})) {
    const found = values?.signature ?? values?.thoughtSignature ?? values?.redactedData;
    if (found && told.signatures.at(-1) !== found) told.signatures.push(found);
  }
}

function failed(error, own) {
  told.ended = "error";
  told.own = own;
  told.error = `${error?.name ?? "Error"}: ${error?.message ?? JSON.stringify(error)}`;
}

// The parts of `fullStream`, as its documentation lists them.
function read(part) {
  sign(part);
  switch (part.type) {
    case "text-delta":
      if (part.text) keep("text");
      told.text += part.text;
      break;
    case "reasoning-start":
      keep("reasoning");
      break;
    case "reasoning-delta":
      told.reasoning += part.text;
      break;
    case "tool-call":
      if (part.providerExecuted || part.invalid) break; // run by the provider, or marked as not to be run
      keep("call");
      told.calls.push([part.toolName, part.input]);
      break;
    case "error":
      failed(part.error, true); // the library gave the failure to its user: its own
      break;
    case "abort": // a timeout; what this program stops itself is not read here
      failed({ name: "abort", message: String(part.reason ?? "") }, true);
      break;
    case "finish":
      if (FAILURES.includes(part.finishReason) && told.ended === "whole") {
        failed({ name: "finishReason", message: part.finishReason }, true);
      }
      told.stop = part.rawFinishReason ?? part.finishReason;
      told.input_tokens = part.totalUsage?.inputTokens ?? null;
      told.output_tokens = part.totalUsage?.outputTokens ?? null;
      break;
  }
}

// Without `execute` a call ends the step: the caller runs it.
function tools() {
  const inputSchema = jsonSchema({ type: "object", additionalProperties: true });
  return Object.fromEntries(TOOLS.map((name) => [name, tool({ inputSchema })]));
}

async function ask(messages) {
  const stopped = new AbortController();
  const result = streamText({
    model: await model(),
    messages,
    tools: tools(),
    maxRetries: Number(retries),
    timeout: { firstChunkMs: SILENCE, chunkMs: SILENCE },
    abortSignal: stopped.signal,
    onError() {}, // its default writes to the console
  });
  for await (const part of result.fullStream) {
    if (!stopped.signal.aborted) read(part);
    if (mode === "leave" && told.text) stopped.abort(); // as its documentation stops a stream
  }
  return result;
}

const messages = [{ role: "user", content: "x" }];
try {
  const result = await ask(messages);
  if (mode === "replay") {
    messages.push(...(await result.response).messages);
    const output = { type: "text", value: "ok" };
    const content = (await result.toolCalls).map(({ toolCallId, toolName }) => {
      return { type: "tool-result", toolCallId, toolName, output };
    });
    if (content.length > 0) messages.push({ role: "tool", content });
    await ask(messages);
  }
} catch (error) {
  failed(error, AISDKError.isInstance(error));
}
process.stdout.write(JSON.stringify(told) + "\n");
// Left running until its standard input ends: the caller looks at the connections first.
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
