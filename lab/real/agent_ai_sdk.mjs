// An agent of the AI SDK: one tool, a conversation in a file.
//
//     node agent_ai_sdk.mjs PROVIDER ADDRESS HISTORY QUESTION

import { execSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const [provider, url, file, question] = process.argv.slice(2);
const apiKey = 'dummy';
const models = {
  anthropic: () => createAnthropic({ baseURL: `${url}/v1`, apiKey })('claude-sonnet-4-5'),
  openai: () => createOpenAI({ baseURL: `${url}/v1`, apiKey }).responses('gpt-5.5'),
  google: () =>
    createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey })('gemini-3-pro-preview'),
  'openai-compatible': () =>
    createOpenAICompatible({ name: 'gateway', baseURL: `${url}/v1`, apiKey })('agent-model'),
};
const providerOptions = {
  anthropic: { thinking: { type: 'enabled', budgetTokens: 2000 } },
  openai: { reasoningEffort: 'medium', store: false, include: ['reasoning.encrypted_content'] },
  google: { thinkingConfig: { thinkingLevel: 'high', includeThoughts: true } },
  gateway: { reasoningEffort: 'medium' },
};
const run_command = tool({
  description: 'Runs a command of the shell.',
  inputSchema: z.object({ command: z.string() }),
  execute: async ({ command }) => execSync(command, { shell: '/bin/bash' }).toString() || 'done',
});
const messages = existsSync(file) ? JSON.parse(readFileSync(file, 'utf-8')) : [];
messages.push({ role: 'user', content: question });
const result = streamText({
  model: models[provider](),
  messages,
  tools: { run_command },
  providerOptions,
  stopWhen: stepCountIs(8),
  maxRetries: 2,
  onError: ({ error }) => {
    console.error(String(error?.message ?? error));
    process.exitCode = 1;
  },
});
console.log(await result.text);
writeFileSync(file, JSON.stringify([...messages, ...(await result.responseMessages)]));
