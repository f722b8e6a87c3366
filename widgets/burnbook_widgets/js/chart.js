// ── part 5: the view, its listeners, zoom and keys ──────────────────────────

const OPTIONS = ["smoothing", "log", "detail", "zoom", "shown"];
const KINDS = [["steps", "epochs"], ["steps"], ["epochs"]]; // what `detail` shows

function render({ model, el }) {
  const view = build(el);
  const panels = [];
  let waiting = 0;
  let telling = 0;
  let others = [];

  function layPanels() {
    for (const panel of panels) panel.stop();
    panels.length = 0;
    view.panels.replaceChildren();
    for (const about of model.get("panels")) panels.push(makePanel(view, about, { zoomTo, step }));
    showRuns();
  }

  function showRuns() {
    others = readRuns(model.get("runs"), model.get("runs_data"));
    showFrame();
  }

  function showFrame() {
    const series = readSeries(model.get("frame"), model.get("data"));
    panels.forEach((panel, place) => {
      panel.series = series.filter((one) => one.panel === place);
    });
    showOptions();
  }

  function showOptions() {
    const shown = model.get("shown");
    const names = model.get("runs").names || [];
    const zoom = model.get("zoom");
    panels.forEach((panel, place) => {
      panel.others = others
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
      model.send(Object.fromEntries(OPTIONS.map((name) => [name, model.get(name)])));
    }, 150);
  }

  function toggleRun(place) {
    const shown = model.get("shown");
    const next = shown.includes(place) ? shown.filter((one) => one !== place) : [...shown, place];
    change("shown", next.sort());
    view.runs.children[place].focus(); // the button was made anew
  }

  // What is changed here is drawn at once; the kernel hears of it when it can.
  function change(name, value) {
    model.set(name, value);
    model.save_changes();
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
    const at = panel.cursor ?? (from + to) / 2;
    const factor = { "+": 0.7, "=": 0.7, "-": 1 / 0.7 }[key];
    if (factor) zoomTo(at - (at - from) * factor, at + (to - at) * factor, panel.whole);
    const move = { ArrowLeft: -0.1, ArrowRight: 0.1 }[key] * (to - from);
    if (move) zoomTo(from + move, to + move, panel.whole);
    if (key === "0") change("zoom", []);
    const zoom = model.get("zoom").map(figure);
    view.live.textContent = zoom.length ? `epochs ${zoom[0]} to ${zoom[1]}` : "all epochs";
  }

  function redraw() {
    if (waiting) return; // one drawing per screen refresh, however many reasons
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      for (const panel of panels) drawPanel(panel);
    });
  }

  const showStatus = () => writeStatus(view, model.get("status"));
  const showNorms = () => writeNorms(view, model.get("norms"), model.get("norms_data"));
  const listeners = {
    "change:panels": layPanels,
    "change:frame": showFrame,
    "change:runs": showRuns,
    "change:status": showStatus,
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
  const stopTheme = watchTheme(redraw);
  const sizes = new ResizeObserver(redraw);
  sizes.observe(view.panels);
  layPanels();
  showStatus();
  showNorms();

  return () => {
    unfollow();
    for (const panel of panels) panel.stop();
    cancelAnimationFrame(waiting);
    clearTimeout(telling);
    sizes.disconnect();
    stopTheme();
    el.replaceChildren();
  };
}

export default { render };

// The epochs of this run, and as far as the other runs that are shown have come.
function wholeSpan(span, others) {
  const ends = others.map((one) => (one.table.length ? Math.ceil(one.table.at(-1)[0]) : 0));
  const own = span || [0, 1];
  return [own[0], Math.max(own[1], ...ends)];
}

// ── one panel: a canvas with its title and read-out ─────────────────────────

function makePanel(view, about, { zoomTo, step }) {
  const figure = make("figure", "bb-panel", view.panels);
  const title = make("figcaption", "bb-title", figure);
  title.textContent = about.unit ? `${about.name} (${about.unit})` : about.name;
  const stage = make("div", "bb-stage", figure);
  const canvas = make("canvas", "", stage, {
    tabindex: 0,
    role: "img",
    "data-lm-suppress-shortcuts": "true",
  });
  const tip = make("div", "bb-tip", stage, { "aria-hidden": "true" });
  const panel = {
    ...about, canvas, tip, view, step, series: [], others: [], kinds: KINDS[0], span: [0, 1],
    whole: [0, 1], cursor: null, drag: null, smoothing: 0, log: false, empty: "",
  };
  const events = new AbortController();
  const on = (name, act) =>
    canvas.addEventListener(name, act, { signal: events.signal, passive: false });
  const hide = () => {
    panel.cursor = null;
    drawPanel(panel);
  };
  on("pointermove", (event) => {
    const x = across(panel, event.offsetX);
    panel.cursor = x >= panel.span[0] && x <= panel.span[1] ? x : null;
    if (panel.drag) {
      panel.drag.to = Math.min(Math.max(x, panel.span[0]), panel.span[1]);
      panel.drag.wide ||= Math.abs(event.offsetX - panel.drag.pixel) > 6;
    }
    drawPanel(panel);
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
  on("blur", hide);
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
  const tables = ["train", "valid"].map((split) => find(panel, split, "epochs"));
  const rows = [...tables, ...panel.others.map((one) => one.table)].flat();
  const [low, high] = panel.span;
  const stops = [...new Set(rows.map((row) => Math.ceil(row[0])))]
    .filter((x) => x >= low && x <= high)
    .sort((a, b) => a - b);
  if (!stops.length) return;
  const at = panel.cursor;
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
  panel.cursor = to();
  drawPanel(panel);
  if (panel.cursor !== null) panel.view.live.textContent = readOut(panel).join(", ");
}
