// Runs the page's Markdown without a browser, as far as it needs none: which blocks are settled, and their HTML.
//
//   node markdown.mjs MODULE      MODULE: blocks.js
//   stdin    {"texts": [{"delta": text, "count": n} or {"pieces": [text]}]}
//   stdout   for each: {html: of all blocks, in order; cpu: ms; most: characters of the largest open end that was drawn}

const { Blocks } = await import(process.argv[2]);

let input = '';
for await (const chunk of process.stdin) input += chunk;

// What a page would show: settled blocks, and the open ones, with the entries that are kept.
function shown({ delta, count = 1, pieces = null }) {
  const blocks = new Blocks();
  const settled = [];
  let open = [];
  let most = 0;
  let kept = ''; // entries that are on the screen already, of the first open block
  const start = process.cpuUsage();
  for (const piece of pieces ?? Array.from({ length: count }, () => delta)) {
    blocks.append(piece);
    const drawn = blocks.take();
    settled.push(...drawn.settled);
    open = drawn.open;
    kept = drawn.frozen;
    most = Math.max(most, ...open.map(html => html.length));
  }
  const { user, system } = process.cpuUsage(start);
  const html = [...settled, ...open].join('');
  return { html: html.length < 10_000 ? html : `${html.length} characters`, kept, most, cpu: (user + system) / 1000 };
}

console.log(JSON.stringify(JSON.parse(input).texts.map(shown)));
