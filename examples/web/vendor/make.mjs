// Makes the files of this folder from npm's packages, at the versions of package.json:
//
//   npm install && node make.mjs FOLDER      FOLDER: where package.json was installed; without it, this one
//
// The files of the pages of React and AG-UI are stored compressed, as the server sends them.

import { createRequire } from 'node:module';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = dirname(fileURLToPath(import.meta.url));
const home = resolve(process.argv[2] ?? here);
const { build } = await import(pathToFileURL(createRequire(join(home, 'package.json')).resolve('esbuild')).href);

const LANGUAGES = [
  'bash', 'c', 'cpp', 'csharp', 'css', 'diff', 'dockerfile', 'go', 'ini', 'java', 'javascript', 'json', 'kotlin', 'markdown', 'php', 'python',
  'ruby', 'rust', 'shell', 'sql', 'swift', 'typescript', 'xml', 'yaml',
];
const BUNDLES = {
  'markdown.js': `
    export { default as MarkdownIt } from 'markdown-it';
    export { default as DOMPurify } from 'dompurify';`,
  'highlight.js': `
    import hljs from 'highlight.js/lib/core';
    ${LANGUAGES.map(name => `import ${name} from 'highlight.js/lib/languages/${name}'; hljs.registerLanguage('${name}', ${name});`).join('\n')}
    export default hljs;`,
  'use-chat.js.gz': `
    import 'no-eval:node_modules/zod';
    import { createElement } from 'react';
    import htm from 'htm';
    export { createRoot } from 'react-dom/client';
    export { useState, useEffect, useRef } from 'react';
    export { useChat } from '@ai-sdk/react';
    export { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
    export const html = htm.bind(createElement);`,
  'ag-ui.js.gz': `
    import 'no-eval:node_modules/zod';
    import 'no-eval:node_modules/@ag-ui/client/node_modules/zod';
    export { HttpAgent } from '@ag-ui/client';`,
};

// Of the error messages of zod only the English ones: the others are half of the file.
const english = {
  name: 'english',
  setup(maker) {
    maker.onResolve({ filter: /locales\/index\.js$/ }, ({ resolveDir }) => ({ path: join(resolveDir, '../locales/en.js'), namespace: 'english' }));
    maker.onLoad({ filter: /.*/, namespace: 'english' }, ({ path }) => {
      return { contents: `export { default as en } from ${JSON.stringify(path)};`, resolveDir: home };
    });
  },
};

// zod tries whether it may compile code, which the page's content security policy forbids and reports as an error. To be imported first.
const noEval = {
  name: 'no-eval',
  setup(maker) {
    maker.onResolve({ filter: /^no-eval:/ }, ({ path }) => ({ path: join(home, path.replace('no-eval:', '')), namespace: 'no-eval' }));
    maker.onLoad({ filter: /.*/, namespace: 'no-eval' }, ({ path }) => {
      const core = JSON.stringify(join(path, 'v4/core/index.js'));
      return { contents: `import { config } from ${core}; config({ jitless: true });`, resolveDir: home };
    });
  },
};

const licences = new Map();

for (const [name, contents] of Object.entries(BUNDLES)) {
  const made = await build({
    stdin: { contents, resolveDir: home },
    bundle: true, minify: true, format: 'esm', target: 'es2022', platform: 'browser', legalComments: 'none',
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [english, noEval], metafile: true, write: false, absWorkingDir: home,
  });
  for (const path of Object.keys(made.metafile.inputs)) noteLicence(path.replace(/^[\w-]+:/, ''), name.replace('.gz', ''));
  const [{ contents: bytes }] = made.outputFiles;
  writeFileSync(join(here, name), name.endsWith('.gz') ? gzipSync(bytes, { level: 9 }) : bytes);
}

function noteLicence(path, bundle) {
  const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];
  if (!folder) return;
  const root = resolve(home, folder);
  const { name, version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const title = `${name} ${version}, ${license}`;
  if (!licences.has(title)) licences.set(title, { bundles: new Set(), text: licenceText(root) });
  licences.get(title).bundles.add(bundle);
}

function licenceText(root) {
  const file = readdirSync(root).find(name => /^licen[cs]e/i.test(name));
  return file ? readFileSync(join(root, file), 'utf8').trim() : 'The package has no file of its licence; the Apache License 2.0 is in this file.';
}

const sections = [...licences].sort().map(([title, { bundles, text }]) => `${title} (in ${[...bundles].join(', ')})\n\n${text}\n`);
writeFileSync(join(here, 'LICENCES.txt'), sections.join(`\n${'-'.repeat(72)}\n\n`));
