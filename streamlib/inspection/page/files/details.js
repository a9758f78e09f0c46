// What is unusual about the response, what happened to its request, and other chunks.

function showUnusual(model) {
  const { split_characters: split, unknown_events: unknown, notices, request } = model.inspection;
  const sections = [];
  if (split && split.count) {
    const entries = split.bytes
      .slice(0, 50)
      .map(byte => frameLink(lastAtMost(model.frameStarts, byte), `byte ${count(byte)}`));
    sections.push(listed(`Chunks that end inside a character: ${count(split.count)}`, entries));
  }
  if (unknown && unknown.length) {
    sections.push(
      listed(
        "Unknown events",
        unknown.map(({ frame, event, count: times }) =>
          frameLink(frame, `${event} ×${count(times)}`),
        ),
      ),
    );
  }
  if (notices && notices.length) {
    sections.push(
      listed(
        "Notices",
        notices
          .slice(0, 200)
          .map(({ frame, code, detail }) => frameLink(frame, `${code}: ${detail}`)),
      ),
    );
  }
  if (request) sections.push(requestSection(request));
  at("unusual").replaceChildren(...sections);
}

function listed(title, entries) {
  return make(
    "section",
    {},
    make("h2", {}, title),
    make("ul", { class: "plain" }, ...entries.map(entry => make("li", {}, entry))),
  );
}

function requestSection(request) {
  const changes = (request.changes || []).map(({ action, path, reason, breaks_prefix: breaks }) =>
    quoted(`${action} ${path}: ${reason}${breaks ? " (breaks the cached prefix)" : ""}`),
  );
  const section = listed(
    "Request: what was dropped, downgraded or changed",
    changes.length ? changes : ["nothing"],
  );
  const about = [
    request.wire_api,
    request.model,
    count(request.bytes || 0, "byte"),
    `${count(request.items || 0, "item")}`,
    `${count(request.tools || 0, "tool")}`,
  ];
  section.append(make("p", { class: "soft" }, quoted(about.filter(Boolean).join(" · "))));
  if (request.text) section.append(requestText(request.text));
  return section;
}

// The text is large, and seldom read: it is shown once the details are opened.
function requestText(text) {
  const content = make("pre", { class: "mono" });
  const toggle = () => {
    if (!content.firstChild) content.append(shownJson(text));
  };
  return make("details", { toggle }, make("summary", {}, "the request"), content);
}

function showSplit(model, index) {
  const { results, skipped } = model.inspection.splits;
  const result = results[index];
  at("split").max = Math.max(0, results.length - 1);
  at("split").value = index;
  if (!result) return at("same").replaceChildren("not tried");
  const name =
    typeof result.split === "number"
      ? `${count(result.split, "byte")} a chunk`
      : `chunks: ${result.split}`;
  const verdict = result.same
    ? "the events are the same"
    : `the events differ from event ${result.first_difference} on`;
  const text = `${name} · ${count(result.chunks, "chunk")} · ${verdict}`;
  at("split").setAttribute("aria-valuetext", text);
  const frame = result.same ? null : model.frameOfEvent(result.first_difference);
  at("same").replaceChildren(
    make("span", { class: result.same ? "ok" : "error" }, frameLink(frame, text)),
  );
  const tried = results.map(({ split }) => split).join(", ");
  const left = (skipped || []).map(({ split, reason }) => `${split} (${reason})`).join(", ");
  at("split-borders").textContent =
    [
      `Tried when this page was made: ${tried}.`,
      left && `Not tried: ${left}.`,
      "The bytes of a frame show where these chunks end.",
    ]
      .filter(Boolean)
      .join(" ");
}
