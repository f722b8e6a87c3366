// ── part 6: the controls of a training ──────────────────────────────────────
//
// Buttons send a message and wait to be heard: until then they say "queued". What only
// changes the look acts here at once, and the kernel hears of it when it can.

const BUTTONS = {
  stop: ["Stop", "End after this batch and keep the model"],
  pause: ["Pause", "Pause after this batch; press again to resume"],
  save: ["Save checkpoint", "Keep a checkpoint when this epoch ends"],
  norms: ["Show norms", "How large weights and gradients are, per layer"],
  runs: ["Other runs", "Show the curves of the newest runs beside this one"],
  export: ["Export HTML", "Download curves, table and config as one HTML file that needs no kernel"],
};
const WHILE_IT_TRAINS = ["stop", "pause", "save"];
const NO_CHECKPOINTER = "This run has no checkpointer: with_file_checkpointer(…) gives it one";
const PATIENCE = 500; // milliseconds until a click counts as queued

function buildControls(view, about, { press, set }) {
  const box = view.controls;
  const row = make("div", "bb-row", box, { role: "group", "aria-label": "training" });
  const buttons = {};
  for (const [name, [text, title]] of Object.entries(BUTTONS)) {
    buttons[name] = make("button", "bb-button", row, { type: "button", title }, text);
    buttons[name].addEventListener("click", () => press(name));
  }
  const note = make("div", "bb-note", box, {}, about.note || "");
  const looks = make("div", "bb-row", box, { role: "group", "aria-label": "display options" });
  const smooth = make("label", "bb-field", looks, {
    title: "Average the batches: 0.9 is over about ten steps",
  }, "Smoothing");
  const slider = make("input", "bb-slider", smooth, { type: "range", min: 0, max: 0.99, step: 0.01 });
  const shown = make("output", "bb-amount", smooth);
  slider.addEventListener("input", () => set("smoothing", Number(slider.value)));
  const log = make("label", "bb-field", looks, { title: "Logarithmic scale: equal distances are equal factors" });
  const check = make("input", "", log, { type: "checkbox" });
  log.append("log scale");
  check.addEventListener("change", () => set("log", check.checked));
  const detail = choice(looks, "show", ["batches and epochs", "batches", "epochs"], (place) => set("detail", place));
  const axis = choice(looks, "x axis", ["epoch", "step", "time"], (place) => set("axis", place));
  // In a notebook single keys are commands; those that move these controls stay here.
  box.addEventListener("keydown", (event) => event.stopPropagation());
  return { box, buttons, note, slider, shown, check, detail, axis };
}

function choice(parent, name, options, choose) {
  const group = make("div", "bb-choice", parent, { role: "group", "aria-label": name });
  if (name === "x axis") make("span", "bb-word", group, {}, "by");
  return options.map((text, place) => {
    const button = make("button", "bb-button", group, { type: "button" }, text);
    button.addEventListener("click", () => choose(place));
    return button;
  });
}

function writeLook(controls, get) {
  const beta = get("smoothing");
  const steps = Math.round(1 / (1 - beta));
  if (Number(controls.slider.value) !== beta) controls.slider.value = beta;
  controls.shown.textContent = beta ? `${beta.toFixed(2)}, about ${steps} steps` : "off";
  controls.slider.setAttribute("aria-valuetext", controls.shown.textContent);
  controls.check.checked = get("log");
  for (const name of ["detail", "axis"]) {
    controls[name].forEach((button, place) => button.setAttribute("aria-pressed", place === get(name)));
  }
}

// What each button says and whether it can be pressed: by the state of the run, by what
// has been pressed and not been heard, and by whether there still is a kernel.
function writeControls(controls, about, status, { norms, pending, lost }) {
  const ended = ENDED.includes(status.state);
  const texts = {
    stop: status.state === "stopping" ? "Stopping" : "Stop",
    pause: status.state === "paused" ? "Resume" : "Pause",
    save: status.waiting ? "Saving at epoch end" : "Save checkpoint",
    norms: norms ? "Hide norms" : "Show norms",
  };
  for (const [name, button] of Object.entries(controls.buttons)) {
    const asked = pending.get(name);
    const queued = asked && (asked.told || about.note?.startsWith("◷")) && !lost;
    const text = texts[name] || BUTTONS[name][0];
    button.textContent = queued ? `${text} · queued` : text;
    button.classList.toggle("bb-queued", Boolean(queued));
    button.hidden = ended && (WHILE_IT_TRAINS.includes(name) || (name === "norms" && !norms));
    const useless = name === "save" && !about.saves;
    button.disabled =
      Boolean(lost) || useless || status.state === "closed" ||
      (status.state === "stopping" && WHILE_IT_TRAINS.includes(name));
    button.title = useless ? NO_CHECKPOINTER : lost || BUTTONS[name][1];
  }
  controls.note.textContent = lost || ended ? "" : about.note || "";
  controls.note.hidden = !controls.note.textContent;
}
