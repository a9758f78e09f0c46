// The verdict with its findings, and the cards.

function showVerdict(model) {
  const { inspection } = model;
  const { outcome, source, facts } = inspection;
  at("verdict").replaceChildren(pill(outcome));
  at("name").replaceChildren(quoted(source.name || "streamlib inspector"));
  const about = [source.guessed ? `${source.wire_api} (guessed)` : source.wire_api];
  if (source.forms?.length) about.push(`from ${source.forms.join(", ")}`);
  about.push(count(facts.bytes, "byte"));
  const status = source.status ? `HTTP ${source.status}` : "no response";
  if (source.recorded || source.status !== 200) about.push(status);
  about.push(
    outcome.response_id,
    source.url,
    source.end && `ended by ${source.end}`,
    inspection.made_by,
  );
  at("about").replaceChildren(quoted(about.filter(Boolean).join(" · ")));
  at("findings").replaceChildren(
    ...inspection.findings.map(finding =>
      make(
        "li",
        { class: finding.level },
        `${MARKS[finding.level]} `,
        frameLink(finding.frame, finding.text + (finding.detail || "")),
      ),
    ),
  );
  document.title = shown(`${source.name || "recording"} – streamlib inspector`);
  at("privacy").textContent = inspection.redacted
    ? "Texts are masked, their lengths are true. No bytes and no headers."
    : "Holds what was said. It may hold keys that a server repeated.";
}

// As in the terminal: a colour alone says nothing.
const MARKS = { ok: "=", warning: "!", error: "×" };

function pill(outcome) {
  const text = make("span", { class: `pill ${outcome.level}` });
  text.append(`${MARKS[outcome.level]} `, quoted(outcome.text));
  return text;
}

// A text that leads to a frame, where it is known which.
function frameLink(frame, text) {
  if (frame == null) return quoted(text);
  return make("a", { href: `#frame=${frame}` }, quoted(text));
}

function showCards(model) {
  const { facts, outcome, items } = model.inspection;
  const rate = facts.tokens_per_second;
  const cards = [
    ["model", outcome.model || "–"],
    [
      "stop reason",
      outcome.stop_reason || "–",
      outcome.native_stop_reason === outcome.stop_reason ? "" : outcome.native_stop_reason,
    ],
    ["first byte", seconds(facts.first_byte)],
    ["first token", seconds(facts.first_token)],
    ["duration", seconds(facts.duration)],
    ["tokens/s", rate == null ? "–" : rate.toFixed(1)],
    ["tokens in → out", tokensText(facts.usage), cacheText(facts.usage)],
    ["items", itemsText(items), `${count(facts.characters, "character")}`],
    model.isTimed
      ? ["frames / chunks", `${count(facts.frames)} / ${count(facts.chunks)}`]
      : ["frames", count(facts.frames), "no times were recorded"],
    [
      "limits left",
      limitsText(facts.limits),
      facts.retry_after ? `retry after ${seconds(facts.retry_after)}` : "",
    ],
    ["longest silence", ...silenceTexts(facts)],
  ];
  at("cards").replaceChildren(
    // What is not known has no card.
    ...cards
      .filter(([, value]) => value !== "–")
      .map(([label, value, detail]) =>
      make(
        "div",
        {},
        make("dt", {}, label),
        make("dd", {}, quoted(value), make("small", {}, quoted(detail || ""))),
      ),
    ),
  );
}

function itemsText(items) {
  const counts = new Map();
  for (const { type } of items) counts.set(type, (counts.get(type) || 0) + 1);
  return Array.from(counts, ([type, number]) => (number > 1 ? `${number} × ${type}` : type)).join(
    ", ",
  ) || "–";
}

function tokensText(usage) {
  if (!usage) return "–";
  return `${known(usage.input_tokens)} → ${known(usage.output_tokens)}`;
}

function known(value) {
  return value == null ? "?" : count(value);
}

const TOKEN_KINDS = {
  cache_read_input_tokens: "from cache",
  cache_write_input_tokens: "into cache",
  reasoning_output_tokens: "reasoning",
};

function cacheText(usage) {
  const parts = [];
  for (const [field, label] of Object.entries(TOKEN_KINDS)) {
    if (usage && usage[field]) parts.push(`${count(usage[field])} ${label}`);
  }
  return parts.join(", ");
}

function limitsText(limits) {
  if (!limits || !limits.length) return "–";
  return limits
    .map(({ name, remaining, limit }) => `${name} ${known(remaining)} of ${known(limit)}`)
    .join(", ");
}

// No bytes, and bytes without a finished frame: two silences, with two causes.
function silenceTexts({ longest_no_bytes: bytes, longest_no_frame: frame }) {
  const lasts = silence => silence.end - silence.start;
  return [
    bytes ? `${seconds(lasts(bytes))} without bytes` : "–",
    frame ? `${seconds(lasts(frame))} of bytes without a frame` : "",
  ];
}
