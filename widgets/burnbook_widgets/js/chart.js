// Building blocks · Learner. The live chart: curves on canvas, progress, and a read-out.
//
// Python sends two traits: `frame` says which series there are, `data` holds their
// rows as float32 (position in epochs, mean, lowest, highest). Everything else here
// turns rows into pixels. No library: a reader can follow it from top to bottom.

const DASH = { train: [], valid: [7, 4] };
const BOX = { left: 56, right: 12, top: 10, bottom: 40 };
const FONT = 11.5;

function render({ model, el }) {
  const view = build(el);
  const panels = [];
  let waiting = 0;

  function layPanels() {
    for (const panel of panels) panel.stop();
    panels.length = 0;
    view.panels.replaceChildren();
    for (const about of model.get("panels")) panels.push(makePanel(view, about));
    showFrame();
  }

  function showFrame() {
    const series = readSeries(model.get("frame"), model.get("data"));
    panels.forEach((panel, place) => {
      panel.series = series.filter((one) => one.panel === place);
      panel.span = model.get("frame").span || [0, 1];
    });
    redraw();
  }

  function redraw() {
    if (waiting) return; // one drawing per screen refresh, however many reasons
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      for (const panel of panels) drawPanel(panel);
    });
  }

  const showStatus = () => writeStatus(view, model.get("status"));
  const listeners = {
    "change:panels": layPanels,
    "change:frame": showFrame,
    "change:status": showStatus,
  };
  for (const [name, act] of Object.entries(listeners)) model.on(name, act);
  const stopTheme = watchTheme(redraw);
  const sizes = new ResizeObserver(redraw);
  sizes.observe(view.panels);
  layPanels();
  showStatus();

  return () => {
    for (const [name, act] of Object.entries(listeners)) model.off(name, act);
    for (const panel of panels) panel.stop();
    cancelAnimationFrame(waiting);
    sizes.disconnect();
    stopTheme();
    el.replaceChildren();
  };
}

export default { render };

// ── the page ────────────────────────────────────────────────────────────────

function make(tag, name, parent, attributes = {}) {
  const node = document.createElement(tag);
  if (name) node.className = name;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  parent.append(node);
  return node;
}

function build(el) {
  const root = make("div", "bb-chart", el);
  const status = make("div", "bb-status", root);
  const headline = make("div", "bb-headline", status);
  const bar = make("div", "bb-bar", status, {
    role: "progressbar",
    "aria-label": "training progress",
    "aria-valuemin": 0,
    "aria-valuemax": 100,
  });
  const fill = make("div", "bb-fill", bar);
  const detail = make("div", "bb-detail", status);
  const legend = make("div", "bb-legend", root);
  legend.innerHTML =
    sample("train", "bb-train", '<circle cx="17" cy="6" r="3.5"/>') +
    sample("valid", "bb-valid", '<rect x="13.5" y="2.5" width="7" height="7"/>') +
    '<span class="bb-key"><svg width="34" height="12" aria-hidden="true">' +
    '<rect class="bb-train bb-band" x="2" width="30" height="12"/></svg>' +
    "range of the batches</span>";
  const panels = make("div", "bb-panels", root);
  const live = make("div", "bb-live", root, { "aria-live": "polite", role: "status" });
  return { root, headline, bar, fill, detail, panels, live };
}

function sample(name, style, mark) {
  const dash = DASH[name].join(" ");
  return (
    `<span class="bb-key"><svg width="34" height="12" aria-hidden="true" class="${style}">` +
    `<line x1="1" y1="6" x2="33" y2="6" stroke-width="2" stroke-dasharray="${dash}"/>` +
    `${mark}</svg>${name}</span>`
  );
}

function writeStatus(view, status) {
  const percent = Math.round(100 * (status.done || 0));
  view.root.dataset.state = status.state || "";
  view.headline.textContent = status.headline || "";
  view.detail.textContent = status.detail || "";
  view.fill.style.width = `${percent}%`;
  view.bar.setAttribute("aria-valuenow", percent);
  view.bar.setAttribute("aria-valuetext", status.headline || "");
  if (status.said && status.said !== view.live.textContent) {
    view.live.textContent = status.said;
  }
}

// Themes change by attributes of the page (JupyterLab) or by the system's setting.
function watchTheme(act) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const page = new MutationObserver(act);
  page.observe(document.body, { attributes: true });
  page.observe(document.documentElement, { attributes: true });
  system.addEventListener("change", act);
  return () => {
    page.disconnect();
    system.removeEventListener("change", act);
  };
}

// ── series ──────────────────────────────────────────────────────────────────

function readSeries(frame, data) {
  if (!frame.parts || !data || !data.byteLength) return [];
  const bytes = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
  const numbers = new Float32Array(bytes);
  let start = 0;
  return frame.parts.map(([panel, split, kind, rows]) => {
    const table = [];
    for (let row = 0; row < rows; row++, start += 4) {
      table.push(numbers.subarray(start, start + 4));
    }
    return { panel, split, kind, table };
  });
}

function find(panel, split, kind) {
  const one = panel.series.find((s) => s.split === split && s.kind === kind);
  return one ? one.table : [];
}

function nearest(table, x) {
  let best = null;
  for (const row of table) {
    if (best === null || Math.abs(row[0] - x) < Math.abs(best[0] - x)) best = row;
  }
  return best;
}

// ── one panel: a canvas with its title and read-out ─────────────────────────

function makePanel(view, about) {
  const figure = make("figure", "bb-panel", view.panels);
  const title = make("figcaption", "bb-title", figure);
  title.textContent = about.unit ? `${about.name} (${about.unit})` : about.name;
  const stage = make("div", "bb-stage", figure);
  const canvas = make("canvas", "", stage, { tabindex: 0, role: "img" });
  const tip = make("div", "bb-tip", stage, { "aria-hidden": "true" });
  const panel = { ...about, canvas, tip, view, series: [], span: [0, 1], cursor: null };
  const events = new AbortController();
  const on = (name, act) =>
    canvas.addEventListener(name, act, { signal: events.signal });
  on("pointermove", (event) => {
    const part = (event.offsetX - BOX.left) / (canvas.clientWidth - BOX.left - BOX.right);
    const inside = part >= 0 && part <= 1;
    panel.cursor = inside ? panel.span[0] + part * (panel.span[1] - panel.span[0]) : null;
    drawPanel(panel);
  });
  on("pointerleave", () => {
    panel.cursor = null;
    drawPanel(panel);
  });
  on("blur", () => {
    panel.cursor = null;
    drawPanel(panel);
  });
  on("keydown", (event) => moveCursor(panel, event));
  panel.stop = () => events.abort();
  return panel;
}

// Arrow keys walk from epoch to epoch (a training mean stands in the middle of one), Home and End to the first and the last.
function moveCursor(panel, event) {
  const stops = [...new Set([...find(panel, "train", "epochs"), ...find(panel, "valid", "epochs")]
    .map((row) => Math.ceil(row[0])))].sort((a, b) => a - b);
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

function figure(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "not a number";
}

function readOut(panel) {
  const x = panel.cursor;
  const unit = panel.unit ? ` ${panel.unit}` : "";
  const lines = [];
  const step = nearest(find(panel, "train", "steps"), x);
  if (step) {
    lines.push(`epoch ${step[0].toFixed(2)}: batches ${figure(step[1])}${unit}`);
    if (step[3] > step[2]) lines[0] += ` (${figure(step[2])} to ${figure(step[3])})`;
  }
  for (const split of ["train", "valid"]) {
    const mean = nearest(find(panel, split, "epochs"), x);
    if (mean) lines.push(`epoch ${Math.ceil(mean[0])}: ${split} mean ${figure(mean[1])}${unit}`);
  }
  return lines;
}

// ── drawing ─────────────────────────────────────────────────────────────────

function drawPanel(panel) {
  const { canvas } = panel;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (!width || !height) return;
  const dense = window.devicePixelRatio || 1;
  const size = [Math.round(width * dense), Math.round(height * dense)];
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  const pen = canvas.getContext("2d");
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  pen.clearRect(0, 0, width, height);

  const style = getComputedStyle(canvas);
  const tone = (name) => style.getPropertyValue(`--bb-${name}`).trim();
  const range = yRange(panel.series);
  const [x0, x1] = panel.span;
  const plot = {
    left: BOX.left, right: width - BOX.right, top: BOX.top, bottom: height - BOX.bottom,
  };
  const sx = (x) => plot.left + ((x - x0) / (x1 - x0)) * (plot.right - plot.left);
  const sy = (y) => plot.bottom - ((y - range[0]) / (range[1] - range[0])) * (plot.bottom - plot.top);

  pen.font = `${FONT}px ${style.fontFamily}`;
  drawAxes(pen, plot, [x0, x1], range, sx, sy, tone);
  pen.save();
  pen.beginPath();
  pen.rect(plot.left, plot.top - 4, plot.right - plot.left + 4, plot.bottom - plot.top + 8);
  pen.clip();
  drawBatches(pen, find(panel, "train", "steps"), sx, sy, tone("train"));
  drawWhiskers(pen, find(panel, "valid", "epochs"), sx, sy, tone("valid"));
  for (const split of ["train", "valid"]) {
    drawMeans(pen, find(panel, split, "epochs"), split, sx, sy, tone(split));
  }
  pen.restore();
  drawCursor(panel, pen, plot, sx, sy, tone("quiet"));
  if (!panel.series.some((one) => one.table.length)) {
    pen.fillStyle = tone("ink");
    pen.textAlign = "center";
    pen.fillText("waiting for the first batch", (plot.left + plot.right) / 2, (plot.top + plot.bottom) / 2);
  }
  canvas.setAttribute("aria-label", describe(panel));
}

function describe(panel) {
  const parts = ["train", "valid"].flatMap((split) => {
    const table = find(panel, split, "epochs");
    if (!table.length) return [];
    return [`${split} from ${figure(table[0][1])} to ${figure(table.at(-1)[1])}`];
  });
  const facts = parts.length ? parts.join(", ") : "no epoch finished yet";
  return `${panel.name} by epoch: ${facts}. Arrow keys read the epochs.`;
}

function yRange(series) {
  let low = Infinity;
  let high = -Infinity;
  for (const { table } of series) {
    for (const row of table) {
      if (!Number.isFinite(row[1])) continue;
      low = Math.min(low, row[1]);
      high = Math.max(high, row[1]);
    }
  }
  if (low > high) return [0, 1];
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  const base = low >= 0 && low < (high - low) * 0.25 ? 0 : low - margin;
  return [base, high + margin];
}

// Round numbers: multiples of 1, 2 or 5 times a power of ten.
function ticks([low, high], count, whole) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const off = (step) => Math.abs(Math.log(step / rough));
  let step = [1, 2, 5, 10].map((m) => m * power).reduce((a, b) => (off(b) < off(a) ? b : a));
  if (whole) step = Math.max(1, Math.round(step));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k <= high / step + 1e-9; k++) {
    found.push(Number((k * step).toPrecision(10)));
  }
  return found;
}

function drawAxes(pen, plot, span, range, sx, sy, tone) {
  const crisp = (value) => Math.round(value) + 0.5; // one sharp pixel, not two grey ones
  const rule = (x, y, toX, toY) => {
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(toX, toY);
    pen.stroke();
  };
  pen.lineWidth = 1;
  pen.setLineDash([]);
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const value of ticks(range, 5, false)) {
    pen.strokeStyle = tone("grid");
    rule(plot.left, crisp(sy(value)), plot.right, crisp(sy(value)));
    pen.fillStyle = tone("ink");
    pen.fillText(String(value), plot.left - 7, sy(value));
  }
  pen.textAlign = "center";
  pen.strokeStyle = tone("quiet");
  for (const value of ticks(span, 6, true)) {
    rule(crisp(sx(value)), plot.bottom, crisp(sx(value)), plot.bottom + 4);
    pen.fillText(String(value), sx(value), plot.bottom + 14);
  }
  rule(crisp(plot.left), plot.top, crisp(plot.left), plot.bottom);
  rule(plot.left, crisp(plot.bottom), plot.right, crisp(plot.bottom));
  pen.fillText("epoch", (plot.left + plot.right) / 2, plot.bottom + 31);
}

// A row whose mean is not a number leaves a gap.
function parts(table) {
  const found = [[]];
  for (const row of table) {
    if (Number.isFinite(row[1])) found.at(-1).push(row);
    else if (found.at(-1).length) found.push([]);
  }
  return found.filter((part) => part.length);
}

function trace(pen, part, sx, sy, column) {
  part.forEach((row, i) => pen[i ? "lineTo" : "moveTo"](sx(row[0]), sy(row[column])));
}

function drawBatches(pen, table, sx, sy, tone) {
  pen.fillStyle = pen.strokeStyle = tone;
  pen.lineWidth = 1;
  for (const part of parts(table)) {
    pen.globalAlpha = 0.18;
    pen.beginPath();
    trace(pen, part, sx, sy, 3);
    for (const row of part.toReversed()) pen.lineTo(sx(row[0]), sy(row[2]));
    pen.fill();
    pen.globalAlpha = 0.5;
    pen.beginPath();
    trace(pen, part, sx, sy, 1);
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

function drawWhiskers(pen, table, sx, sy, tone) {
  pen.strokeStyle = tone;
  pen.globalAlpha = 0.25;
  pen.lineWidth = 3;
  for (const [x, , low, high] of table) {
    pen.beginPath();
    pen.moveTo(sx(x), sy(low));
    pen.lineTo(sx(x), sy(high));
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

function drawMeans(pen, table, split, sx, sy, tone) {
  pen.fillStyle = pen.strokeStyle = tone;
  pen.lineWidth = 2;
  pen.lineJoin = "round";
  for (const part of parts(table)) {
    pen.setLineDash(DASH[split]);
    pen.beginPath();
    trace(pen, part, sx, sy, 1);
    pen.stroke();
    pen.setLineDash([]);
    if (table.length > 60) continue;
    const size = table.length > 20 ? 2.2 : 3.2;
    for (const row of part) {
      const [x, y] = [sx(row[0]), sy(row[1])];
      pen.beginPath();
      if (split === "train") pen.arc(x, y, size, 0, 7);
      else pen.rect(x - size, y - size, 2 * size, 2 * size);
      pen.fill();
    }
  }
}

function drawCursor(panel, pen, plot, sx, sy, tone) {
  const lines = panel.cursor === null ? [] : readOut(panel);
  panel.tip.hidden = !lines.length;
  if (!lines.length) return;
  const x = sx(panel.cursor);
  pen.strokeStyle = tone;
  pen.lineWidth = 1;
  pen.setLineDash([3, 3]);
  pen.beginPath();
  pen.moveTo(x, plot.top);
  pen.lineTo(x, plot.bottom);
  pen.stroke();
  pen.setLineDash([]);
  panel.tip.replaceChildren();
  for (const line of lines) make("div", "", panel.tip).textContent = line;
  const room = plot.right - panel.tip.offsetWidth - 8;
  panel.tip.style.left = `${x + 12 > room ? Math.max(0, x - 12 - panel.tip.offsetWidth) : x + 12}px`;
  const step = nearest(find(panel, "train", "steps"), panel.cursor);
  const high = step && sy(step[1]) < (plot.top + plot.bottom) / 2; // keep the curve in sight
  panel.tip.style.top = `${high ? plot.bottom - panel.tip.offsetHeight - 4 : plot.top + 4}px`;
}
