// Starts the page.

function showModel(model) {
  showVerdict(model);
  showCards(model);
  showUnusual(model);
  const frames = new Frames(model, at("frames"));
  const frame = new FrameView(model);
  const timeline = new Timeline(model, at("timeline"));
  position.model = model;
  position.views = [timeline, frames, new State(model, at("items")), frame];
  at("position").max = model.lastFrame;
  at("filter").value = "";
  at("filter").oninput = () => frames.find(at("filter").value);
  at("split").oninput = () => {
    const index = Number(at("split").value);
    showSplit(model, index);
    const result = model.inspection.splits.results[index];
    frame.split = result ? result.split : "recorded";
    frame.move(position.frame);
  };
  const recorded = model.inspection.splits.results.findIndex(result => result.split === "recorded");
  showSplit(model, Math.max(0, recorded));
  position.set(model.terminal ? model.terminal.frame : model.lastFrame); // the response as it ended
}

async function chooseResponse(number) {
  play.stop();
  at("responses").value = number;
  const model = await modelOf(number);
  // Another one may have been chosen while this one was unpacked.
  if (Number(at("responses").value) === number) showModel(model);
}

// The frame of a row of the difference, of A where A has it.
async function showSide(row) {
  const side = row.a ? 0 : 1;
  if (Number(at("responses").value) !== side) await chooseResponse(side);
  position.set(row.a_frame ?? row.b_frame ?? 0);
}

// The links of findings lead to a row of the table, also when the address names its frame already.
function followLink(event) {
  const link = event.target.closest("a[href^='#frame=']");
  if (!link || event.ctrlKey || event.metaKey) return;
  // In the frame of a notebook, which has no address, the browser would load the notebook into it.
  event.preventDefault();
  play.stop();
  position.set(Number(link.hash.slice("#frame=".length)));
  at("frames").focus({ preventScroll: true });
  at("frames").scrollIntoView({ block: "center" });
}

async function start() {
  const names = await unpackJson("names");
  const difference = await unpackJson("difference");
  at("page").hidden = false;
  const options = names.map((name, number) =>
    make("option", { value: number }, shown(`${difference ? "AB"[number] : number + 1}: ${name}`)),
  );
  at("responses").append(...options);
  at("choose").hidden = names.length < 2;
  at("responses").onchange = () => chooseResponse(Number(at("responses").value));
  at("help").onclick = () => at("keys").showModal();
  at("close").onclick = () => at("keys").close();
  at("back").onclick = () => position.step(-1);
  at("next").onclick = () => position.step(1);
  at("play").onclick = () => play.toggle();
  at("position").oninput = () => position.step(Number(at("position").value) - position.frame);
  await chooseResponse(0);
  if (difference) new Difference(difference, showSide);
  readAddress();
  addEventListener("hashchange", readAddress);
  addEventListener("keydown", pressed);
  addEventListener("click", followLink);
  new ResizeObserver(() => position.views[0].fit()).observe(at("timeline"));
  at("state").textContent = "";
  performance.mark("shown"); // a test reads it
}

start().catch(fail);
