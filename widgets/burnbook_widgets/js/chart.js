// ── part 5: the view, its listeners, zoom and keys ──────────────────────────

const OPTIONS = ["smoothing", "log", "detail", "axis", "splits", "zoom", "shown"];
const LOOK_AGAIN = 2000; // milliseconds between two readings of what is zoomed into
const SILENT = 20_000; // milliseconds after which a training is said to be silent
const KINDS = [["steps", "epochs"], ["steps"], ["epochs"]]; // what `detail` shows

// entry: of the training that the chart belongs to (chart_panel.js); null for none.
function draw(model, el, entry) {
  const view = build(el);
  const panels = [];
  let waiting = 0;
  let telling = 0;
  let others = [];
  let fine = new Map();
  let asked = 0; // when every batch in sight was last asked for
  let heard = performance.now();
  const about = model.get("about") || {};
  const controls = entry && buildControls(view, about, { press, set: change });
  view.controls.hidden = !entry;
  view.name.hidden = !entry;
  view.name.textContent = about.name || "";
  if (entry) view.hush.textContent = `.bb-kept-${entry.key} { display: none; }`;

  function layPanels() {
    for (const panel of panels) panel.stop();
    panels.length = 0;
    view.panels.replaceChildren();
    for (const about of model.get("panels")) panels.push(makePanel(view, about, { zoomTo, step, redraw }));
    showRuns();
  }

  function showRuns() {
    others = readRuns(model.get("runs"), model.get("runs_data"));
    showFrame();
  }

  function showFrame() {
    const series = readSeries(model.get("frame"), model.get("data"));
    const span = model.get("fine")?.span || [0, 0];
    panels.forEach((panel, place) => {
      panel.series = series
        .filter((one) => one.panel === place)
        .map((one) => (one.kind === "steps" ? { ...one, table: refined(one.table, fine.get(place), span) } : one));
      // Where steps and seconds are: those of the batches, from the very beginning.
      panel.way = [new Float32Array(WIDTH), ...find(panel, "train", "steps"), ...find(panel, "valid", "epochs").slice(-1)];
      panel.way.sort((a, b) => a[0] - b[0]);
      panel.gap.textContent = gapText(panel);
    });
    heard = performance.now();
    showOptions();
    lookAgain(span);
  }

  function showFine() {
    fine = readFine(model.get("fine") || {}, model.get("fine_data"));
    asked = 0;
    showFrame();
  }

  // While one looks at the newest batches, they are asked for from time to time.
  function lookAgain([, reached]) {
    const [, to] = model.get("zoom");
    const trains = !ENDED.includes(model.get("status").state);
    const now = performance.now();
    if (!entry || !trains || !(to > reached + 0.01) || asked > now) return;
    asked = now + LOOK_AGAIN;
    tell();
  }

  function showOptions() {
    const shown = model.get("shown");
    const names = model.get("runs").names || [];
    const zoom = model.get("zoom");
    const axis = model.get("axis") || 0;
    panels.forEach((panel, place) => {
      panel.axis = panel.way.length > 2 ? axis : 0;
      panel.splits = model.get("splits");
      panel.others = (axis ? [] : others)
        .filter((one) => one.panel === place && shown.includes(one.run))
        .map((one) => ({ ...one, name: names[one.run] }));
      panel.whole = wholeSpan(model.get("frame").span, panel.others);
      panel.span = zoom.length === 2 ? zoom : panel.whole;
      panel.kinds = KINDS[model.get("detail")] || KINDS[0];
      panel.smoothing = model.get("smoothing");
      panel.log = model.get("log");
      panel.empty = model.get("status").headline ? "waiting for the first batch" : "choose runs";
    });
    writeRuns(view, names, shown, toggleRun);
    writeSplits(view, model.get("splits"));
    view.aside.textContent = axis && names.length ? "other runs: by epoch only" : "";
    if (controls) writeLook(controls, (name) => model.get(name));
    view.zoomed.hidden = zoom.length !== 2;
    if (zoom.length === 2) {
      view.range.textContent = `Epochs ${figure(zoom[0])} to ${figure(zoom[1])}`;
    }
    redraw();
  }

  // A message always passes; changed values wait while a cell keeps the kernel.
  function tell() {
    clearTimeout(telling);
    telling = setTimeout(() => {
      const look = Object.fromEntries(OPTIONS.map((name) => [name, model.get(name)]));
      if (entry) say(entry, { do: "look", ...look });
    }, 150);
  }

  // A click: it counts as queued until the kernel has heard it.
  function press(name) {
    const trains = model.get("status").state;
    const what = name === "pause" && trains === "paused" ? "resume" : name;
    const id = `${name} ${Math.random()}`;
    if (!say(entry, { do: what, id })) return;
    const click = { id, told: false };
    entry.pending.set(name, click);
    showStatus();
    setTimeout(() => {
      if (entry.pending.get(name) !== click) return;
      click.told = true;
      view.live.textContent = `${BUTTONS[name][0]} is queued: the kernel is busy`;
      for (const mount of entry.mounts) mount.refresh();
    }, PATIENCE);
  }

  function hear() {
    const known = model.get("heard");
    for (const [name, { id }] of entry.pending) if (known.includes(id)) entry.pending.delete(name);
    showStatus();
  }

  function toggleSplit(split) {
    const splits = model.get("splits");
    change("splits", splits.includes(split) ? splits.filter((one) => one !== split) : [...splits, split].sort());
  }

  function toggleRun(place) {
    const shown = model.get("shown");
    const next = shown.includes(place) ? shown.filter((one) => one !== place) : [...shown, place];
    change("shown", next.sort());
  }

  // What is changed here is drawn at once; the kernel hears of it when it can.
  function change(name, value) {
    model.set(name, value);
    if (entry?.lost) return;
    try {
      model.save_changes();
    } catch {
      if (entry) lose(entry, "The kernel does not answer");
    }
  }

  function zoomTo(from, to, whole) {
    const width = Math.min(Math.max(to - from, 0.02), whole[1] - whole[0]);
    if (width >= (whole[1] - whole[0]) * 0.999) return change("zoom", []);
    const start = Math.min(Math.max(from, whole[0]), whole[1] - width);
    return change("zoom", [start, start + width]);
  }

  // Walk with the keys: zoom about the cursor or the middle, move by a tenth.
  function step(panel, key) {
    const [from, to] = panel.span;
    const at = view.cursor ?? (from + to) / 2;
    const factor = { "+": 0.7, "=": 0.7, "-": 1 / 0.7 }[key];
    if (factor) zoomTo(at - (at - from) * factor, at + (to - at) * factor, panel.whole);
    const move = { ArrowLeft: -0.1, ArrowRight: 0.1 }[key] * (to - from);
    if (move) zoomTo(from + move, to + move, panel.whole);
    if (key === "0") change("zoom", []);
    const zoom = model.get("zoom").map(figure);
    answer(view, zoom.length ? `epochs ${zoom[0]} to ${zoom[1]}` : "all epochs");
  }

  function redraw() {
    if (waiting) return; // one drawing per screen refresh, however many reasons
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      for (const panel of panels) drawPanel(panel);
    });
  }

  function showStatus() {
    const status = model.get("status");
    writeStatus(view, status);
    if (!entry) return;
    const last = farewell(entry, status);
    if (view.lost.textContent !== last) view.lost.textContent = last;
    view.lost.hidden = !last;
    if (entry.lost && !ENDED.includes(status.state)) {
      view.root.dataset.state = "lost";
      view.headline.textContent = `Last seen in ${status.epoch || "its first epoch"}`;
      view.detail.textContent = "";
    }
    const norms = model.get("norms").open;
    writeControls(controls, about, status, { norms, pending: entry.pending, lost: entry.lost });
  }

  // A training that is silent may be in a long step, or its kernel may be gone.
  const watcher = entry && setInterval(() => {
    const status = model.get("status");
    const silent = performance.now() - heard;
    if (status.state !== "training" || entry.lost || silent < SILENT) return;
    view.detail.textContent = `${status.detail} · no news for ${Math.round(silent / 1000)} s`;
  }, 5000);
  const showReport = () => {
    const open = view.report.querySelector("details")?.open;
    view.report.innerHTML = (entry && model.get("report")) || "";
    if (open) view.report.querySelector("details")?.setAttribute("open", "");
  };
  const showNorms = () => {
    writeNorms(view, model.get("norms"), model.get("norms_data"));
    if (entry) showStatus();
  };
  const listeners = {
    "change:panels": layPanels,
    "change:frame": showFrame,
    "change:runs": showRuns,
    "change:status": showStatus,
    "change:report": showReport,
    "change:fine": showFine,
    "change:heard": () => entry && hear(),
    "change:norms": showNorms,
    "change:norms_data": showNorms,
    "msg:custom": ({ do: what, name }, parts) => what === "export" && download(name, "text/html", parts),
    ...Object.fromEntries(OPTIONS.map((name) => [`change:${name}`, () => {
      showOptions();
      tell();
    }])),
  };
  const unfollow = follow(model, listeners);
  view.whole.addEventListener("click", () => change("zoom", []));
  for (const [split, key] of view.splits) key.addEventListener("click", () => toggleSplit(split));
  const stopTheme = watchTheme(redraw);
  const sizes = new ResizeObserver(redraw);
  sizes.observe(view.panels);
  fine = readFine(model.get("fine") || {}, model.get("fine_data"));
  layPanels();
  showStatus();
  showNorms();
  showReport();

  const stop = () => {
    unfollow();
    clearInterval(watcher);
    for (const panel of panels) panel.stop();
    cancelAnimationFrame(waiting);
    clearTimeout(telling);
    sizes.disconnect();
    stopTheme();
    el.replaceChildren();
  };
  stop.refresh = showStatus;
  return stop;
}

// The epochs of this run, and as far as the other runs that are shown have come.
function wholeSpan(span, others) {
  const ends = others.map((one) => (one.table.length ? Math.ceil(one.table.at(-1)[0]) : 0));
  const own = span || [0, 1];
  return [own[0], Math.max(own[1], ...ends)];
}

// ── one panel: a canvas with its title and read-out ─────────────────────────

function makePanel(view, about, { zoomTo, step, redraw }) {
  const figure = make("figure", "bb-panel", view.panels);
  const title = make("figcaption", "bb-title", figure);
  title.textContent = about.unit ? `${about.name} (${about.unit})` : about.name;
  const gap = make("span", "bb-gap", title);
  const stage = make("div", "bb-stage", figure);
  const canvas = make("canvas", "", stage, {
    tabindex: 0,
    role: "img",
    "data-lm-suppress-shortcuts": "true",
  });
  const tip = make("div", "bb-tip", stage, { "aria-hidden": "true" });
  const panel = {
    ...about, canvas, tip, gap, view, step, redraw, series: [], others: [], kinds: KINDS[0], span: [0, 1],
    whole: [0, 1], drag: null, smoothing: 0, log: false, empty: "", axis: 0, way: [],
    splits: ["train", "valid"],
  };
  const events = new AbortController();
  const on = (name, act) =>
    canvas.addEventListener(name, act, { signal: events.signal, passive: false });
  const hide = () => {
    if (view.walks) return;
    view.cursor = null;
    redraw();
  };
  on("pointermove", (event) => {
    // A page that moves under a pointer at rest tells of it as of a move.
    if (view.walks && !event.movementX && !event.movementY) return;
    view.walks = false;
    const x = across(panel, event.offsetX);
    view.cursor = x >= panel.span[0] && x <= panel.span[1] ? x : null;
    if (panel.drag) {
      panel.drag.to = Math.min(Math.max(x, panel.span[0]), panel.span[1]);
      panel.drag.wide ||= Math.abs(event.offsetX - panel.drag.pixel) > 6;
    }
    redraw(); // the same place in every chart
  });
  on("pointerdown", (event) => {
    const x = across(panel, event.offsetX);
    if (event.button || x < panel.span[0] || x > panel.span[1]) return;
    panel.drag = { from: x, to: x, pixel: event.offsetX, wide: false };
    canvas.setPointerCapture(event.pointerId);
  });
  on("pointerup", () => {
    const drag = panel.drag;
    panel.drag = null;
    if (drag?.wide) zoomTo(Math.min(drag.from, drag.to), Math.max(drag.from, drag.to), panel.whole);
    drawPanel(panel);
  });
  on("pointercancel", () => {
    panel.drag = null;
  });
  on("dblclick", () => step(panel, "0"));
  on("wheel", (event) => {
    // The wheel belongs to the page, unless the chart has the focus or Ctrl is held.
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    step(panel, event.deltaY < 0 ? "+" : "-");
  });
  on("pointerleave", hide);
  on("blur", () => {
    view.walks = false;
    endAnswer(view);
    hide();
  });
  on("keydown", (event) => onKey(panel, event));
  panel.stop = () => events.abort();
  return panel;
}

// Arrow keys walk from epoch to epoch (a training mean stands in the middle of one),
// Home and End to the first and the last; plus, minus, 0 and Shift+arrows zoom.
function onKey(panel, event) {
  const zooms = ["+", "=", "-", "0"].includes(event.key) && !event.ctrlKey && !event.metaKey;
  const moves = event.shiftKey && ["ArrowLeft", "ArrowRight"].includes(event.key);
  if (zooms || moves) {
    event.preventDefault();
    event.stopPropagation(); // in a notebook the same keys restart kernels
    panel.step(panel, event.key);
    return;
  }
  const tables = ["train", "valid"].map((split) => seen(panel, split, "epochs"));
  const rows = [...tables, ...panel.others.map((one) => one.table)].flat();
  const [low, high] = panel.span;
  const stops = [...new Set(rows.map((row) => Math.ceil(row[0])))]
    .filter((x) => x >= low && x <= high)
    .sort((a, b) => a - b);
  if (!stops.length) return;
  const at = panel.view.cursor;
  const to = {
    ArrowRight: () => stops.find((x) => at === null || x > at + 1e-6) ?? stops.at(-1),
    ArrowLeft: () => stops.findLast((x) => at === null || x < at - 1e-6) ?? stops[0],
    Home: () => stops[0],
    End: () => stops.at(-1),
    Escape: () => null,
  }[event.key];
  if (!to) return;
  event.preventDefault();
  event.stopPropagation(); // the notebook moves between cells with the same keys
  panel.view.cursor = to();
  panel.view.walks = panel.view.cursor !== null;
  panel.redraw();
  if (panel.view.walks) answer(panel.view, readOut(panel).join(", "));
}
