// The frame that the page is at: the scrubber, playing, keys, and `#frame=17` in the address.

const WRITE_AFTER = 300; // ms: browsers refuse to change the address many times a second
const UNTIMED_RATE = 30; // frames a second where no times were recorded
const CALM_STEP = 500; // ms between two steps for those who asked for less motion

const position = {
  frame: 0,
  model: null,
  views: [],
  timer: 0,

  set(frame) {
    const { model } = this;
    this.frame = Math.max(0, Math.min(frame, model.lastFrame));
    for (const view of this.views) view.move(this.frame);
    const text = [
      `frame ${count(this.frame)} of 0–${count(model.lastFrame)}`,
      model.isTimed && `${clockTime(model.times[this.frame])} s`,
      `byte ${count(model.frameStarts[this.frame])}`,
    ]
      .filter(Boolean)
      .join(" · ");
    at("where").textContent = text;
    at("position").value = this.frame;
    at("position").setAttribute("aria-valuetext", text);
    clearTimeout(this.timer);
    this.timer = setTimeout(writeAddress, WRITE_AFTER, this.frame);
  },

  step(steps) {
    play.stop();
    this.set(this.frame + steps);
  },
};

function writeAddress(frame) {
  try {
    history.replaceState(null, "", `#frame=${frame}`);
  } catch {
    // In a frame without an origin the address cannot be changed.
  }
}

function readAddress() {
  const [, frame] = location.hash.match(/^#frame=(\d+)$/) || [];
  if (frame === undefined) return;
  play.stop();
  position.set(Number(frame));
}

const play = {
  isOn: false,
  last: 0, // ms of the clock at the last step
  value: 0, // where on the axis

  toggle() {
    if (this.isOn) return this.stop();
    if (position.frame === position.model.lastFrame) position.set(0);
    this.isOn = true;
    this.value = this.valueOf(position.frame);
    this.last = performance.now();
    this.show();
    requestAnimationFrame(now => this.tick(now));
  },

  stop() {
    this.isOn = false;
    this.show();
  },

  show() {
    at("play").textContent = this.isOn ? "Stop" : "Play";
    at("play").setAttribute("aria-pressed", this.isOn);
  },

  valueOf(frame) {
    return position.model.isTimed ? position.model.times[frame] : frame / UNTIMED_RATE;
  },

  tick(now) {
    if (!this.isOn) return;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!isCalm || now - this.last >= CALM_STEP) {
      this.value += (Math.max(0, now - this.last) / 1000) * Number(at("speed").value);
      this.last = now;
      const { model } = position;
      const frame = model.isTimed
        ? lastAtMost(model.times, this.value)
        : Math.floor(this.value * UNTIMED_RATE);
      if (frame > position.frame) position.set(frame);
      if (position.frame >= model.lastFrame) return this.stop();
    }
    requestAnimationFrame(next => this.tick(next));
  },
};

// What a key does anywhere on the page. Those of one letter can be switched off, for people whose
// speech or fingers send letters that they did not mean.
function pressed(event) {
  const { target, key } = event;
  const isTyping = target.closest("input[type=search], select, dialog");
  if (key === "Escape" && target.id === "filter") return leaveFilter();
  if (event.defaultPrevented || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (key.length === 1 && !at("keys-on").checked) return;
  // A button takes the space key, a slider the arrows.
  if (key === " " && target.closest("button, input, summary")) return;
  if (target.type === "range" && target.id !== "position" && /^(Arrow|Home|End)/.test(key)) return;
  const steps = event.shiftKey ? 10 : 1;
  const actions = {
    ArrowRight: () => position.step(steps),
    j: () => position.step(1),
    J: () => position.step(10),
    ArrowLeft: () => position.step(-steps),
    k: () => position.step(-1),
    K: () => position.step(-10),
    Home: () => position.step(-Infinity),
    End: () => position.step(Infinity),
    " ": () => play.toggle(),
    "/": () => at("filter").focus(),
    "?": () => at("keys").showModal(),
    "[": () => moveSplit(-1),
    "]": () => moveSplit(1),
  };
  if (!Object.hasOwn(actions, key)) return;
  event.preventDefault();
  actions[key]();
}

function leaveFilter() {
  at("filter").value = "";
  at("filter").dispatchEvent(new Event("input"));
  at("frames").focus();
}

function moveSplit(step) {
  at("split").value = Number(at("split").value) + step;
  at("split").dispatchEvent(new Event("input"));
}
