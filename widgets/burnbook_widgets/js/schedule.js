// Rates over steps, with a line that reads.
//
// Python sends `frame` (lines, ranges, ticks) and `data`: float32 rows, first the steps
// that are drawn, then the rates of each line. The pointer or the arrow keys move the
// line that reads; where it stands goes back as {do: "read", at}.

const BOX = { left: 64, right: 14, top: 26, bottom: 44, height: 300 };

function render({ model, el }) {
  const root = make("div", "bb-view bb-rates", el, { "data-lm-suppress-shortcuts": "true" });
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const stage = make("div", "bb-rates-stage", root, { tabindex: 0, role: "img" });
  const tip = make("div", "bb-rates-tip", stage, { "aria-hidden": "true" });
  tip.hidden = true;
  const legend = make("div", "bb-rates-legend", root);
  make("div", "bb-rates-keys", root).textContent =
    "Point at the curves, or focus them and use ← →, Page Up, Page Down, Home, End.";
  const live = make("div", "bb-live", root, { role: "status", "aria-live": "polite" });
  const view = { model, stage, tip, live, cursor: -1 };

  const show = () => {
    view.rows = read(model);
    view.cursor = view.rows.steps.findIndex((step) => step >= model.get("at"));
    if (model.get("at") < 0) view.cursor = -1;
    draw(view);
    drawLegend(legend, model.get("frame").lines || []);
  };
  const showFault = () => (fault.textContent = model.get("fault"));
  const say = () => (live.textContent = model.get("said"));
  const listeners = {
    "change:frame": show,
    "change:at": show,
    "change:fault": showFault,
    "change:said": say,
  };
  const unfollow = follow(model, listeners);
  stage.addEventListener("pointermove", (event) => point(view, event));
  stage.addEventListener("pointerleave", () => move(view, -1, false));
  stage.addEventListener("keydown", (event) => press(view, event));
  const sizes = new ResizeObserver(() => draw(view));
  show();
  showFault();
  sizes.observe(stage);
  return () => {
    sizes.disconnect();
    unfollow();
    el.replaceChildren();
  };
}

export default { render };

function read(model) {
  const data = model.get("data");
  const lines = model.get("frame").lines || [];
  if (!data || !data.byteLength) return { steps: [], lines: [] };
  const numbers = floatsOf(data);
  const width = numbers.length / (lines.length + 1);
  const row = (at) => Array.from(numbers.subarray(at * width, (at + 1) * width));
  return { steps: row(0), lines: lines.map((_, i) => row(i + 1)) };
}

// ── drawing ─────────────────────────────────────────────────────────────────

function draw(view) {
  const { model, stage, rows } = view;
  const frame = model.get("frame");
  const width = stage.clientWidth;
  if (!width || !frame.lines) return;
  stage.querySelector("svg")?.remove();
  const svg = put("svg", "", stage, { width, height: BOX.height, "aria-hidden": "true" });
  const right = width - BOX.right;
  const bottom = BOX.height - BOX.bottom;
  const [x0, x1] = frame.x;
  const scale = frame.log ? Math.log : (value) => value;
  const [y0, y1] = frame.y.map(scale);
  view.sx = (step) => BOX.left + ((step - x0) / (x1 - x0)) * (right - BOX.left);
  view.sy = (rate) => bottom - ((scale(rate) - y0) / (y1 - y0)) * (bottom - BOX.top);
  view.toStep = (x) => x0 + ((x - BOX.left) / (right - BOX.left)) * (x1 - x0);

  for (const [value, text] of frame.rows) {
    const y = Math.round(view.sy(value)) + 0.5;
    put("line", "bb-rates-grid", svg, { x1: BOX.left, x2: right, y1: y, y2: y });
    put("text", "bb-rates-end", svg, { x: BOX.left - 8, y: y + 4 }, text);
  }
  for (const [value, text] of frame.columns) {
    const x = view.sx(value);
    put("line", "bb-rates-axis", svg, { x1: x, x2: x, y1: bottom, y2: bottom + 4 });
    put("text", "bb-rates-middle", svg, { x, y: bottom + 18 }, text);
  }
  put("path", "bb-rates-axis", svg, { d: `M${BOX.left},${BOX.top} V${bottom} H${right}` });
  put("text", "bb-rates-middle", svg, { x: (BOX.left + right) / 2, y: bottom + 37 }, "step");
  put("text", "", svg, { x: 4, y: 13 }, `learning rate${frame.log ? ", logarithmic" : ""}`);
  frame.lines.forEach((line, i) => {
    const path = put("path", `bb-rates-line bb-rates-${line.place}`, svg, {
      d: trace(view, rows.lines[i], frame.log),
    });
    if (line.dash.length) path.setAttribute("stroke-dasharray", line.dash.join(" "));
  });
  view.reader = put("g", "bb-rates-reader", svg);
  drawReader(view);
  stage.setAttribute("aria-label", describe(frame, rows));
}

// A rate of zero has no place on a logarithmic scale: a gap.
function trace(view, rates, log) {
  let text = "";
  let open = false;
  rates.forEach((rate, i) => {
    const fits = Number.isFinite(rate) && (!log || rate > 0);
    if (fits) text += `${open ? "L" : "M"}${view.sx(view.rows.steps[i]).toFixed(1)},${view.sy(rate).toFixed(1)}`;
    open = fits;
  });
  return text;
}

function drawLegend(legend, lines) {
  legend.replaceChildren();
  for (const line of lines) {
    const key = make("span", "bb-rates-key", legend);
    const svg = put("svg", "", key, { width: 36, height: 12, "aria-hidden": "true" });
    put("line", `bb-rates-line bb-rates-${line.place}`, svg, {
      x1: 1, x2: 35, y1: 6, y2: 6, "stroke-dasharray": line.dash.join(" "),
    });
    key.append(line.name);
  }
}

function figure(value) {
  const rounded = Number(value.toPrecision(4));
  const small = rounded !== 0 && Math.abs(rounded) < 1e-3;
  return small ? rounded.toExponential().replace("-", "−") : String(rounded);
}

function readOut(view) {
  const { rows, cursor, model } = view;
  const lines = model.get("frame").lines.map((line, i) => `${line.name} ${figure(rows.lines[i][cursor])}`);
  return [`step ${rows.steps[cursor]}`, ...lines];
}

function drawReader(view) {
  const { rows, cursor, tip, reader } = view;
  reader.replaceChildren();
  tip.hidden = cursor < 0 || cursor >= rows.steps.length;
  if (tip.hidden) return;
  const x = view.sx(rows.steps[cursor]);
  put("line", "", reader, { x1: x, x2: x, y1: BOX.top, y2: BOX.height - BOX.bottom });
  view.model.get("frame").lines.forEach((line, i) => {
    const rate = rows.lines[i][cursor];
    const y = view.sy(rate);
    if (Number.isFinite(y)) put("circle", `bb-rates-dot bb-rates-${line.place}`, reader, { cx: x, cy: y, r: 4 });
  });
  tip.replaceChildren();
  for (const text of readOut(view)) make("div", "", tip).textContent = text;
  const room = view.stage.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${x + 12 > room ? Math.max(0, x - 12 - tip.offsetWidth) : x + 12}px`;
}

function describe(frame, rows) {
  const parts = frame.lines.map((line, i) => {
    const rates = rows.lines[i];
    return `${line.name} from ${figure(rates[0])} to ${figure(rates.at(-1))}, highest ${figure(Math.max(...rates))}`;
  });
  return `learning rates over ${frame.x[1] + 1} steps: ${parts.join("; ")}. Arrow keys read them.`;
}

// ── pointer and keys ────────────────────────────────────────────────────────

function move(view, cursor, told = true) {
  if (cursor === view.cursor || !view.sx) return;
  view.cursor = cursor;
  drawReader(view);
  if (!told) return;
  view.live.textContent = readOut(view).join(", ");
  view.model.send({ do: "read", at: view.rows.steps[cursor] });
}

function point(view, event) {
  const step = view.toStep(event.clientX - view.stage.getBoundingClientRect().left);
  const { steps } = view.rows;
  if (!steps.length || step < -0.5 || step > steps.at(-1) + 0.5) return;
  let best = 0;
  steps.forEach((one, i) => {
    if (Math.abs(one - step) < Math.abs(steps[best] - step)) best = i;
  });
  if (best === view.cursor) return;
  view.cursor = best;
  drawReader(view);
}

function press(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const last = view.rows.steps.length - 1;
  const big = Math.max(1, Math.round(last / 10));
  const to = {
    ArrowRight: view.cursor + 1,
    ArrowLeft: view.cursor - 1,
    PageUp: view.cursor + big,
    PageDown: view.cursor - big,
    Home: 0,
    End: last,
  }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  event.stopPropagation(); // the notebook moves between cells with the same keys
  move(view, Math.max(0, Math.min(last, to)));
}
