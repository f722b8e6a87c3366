// ── part 3: drawing ─────────────────────────────────────────────────────────

const BOX = { left: 56, right: 12, top: 10, bottom: 40 };
const FONT = 11.5;

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

// Powers of ten; within two decades also twos and fives; within half a one, as usual.
function logTicks([low, high]) {
  const decades = Math.log10(high / low);
  if (decades < 0.7) return ticks([low, high], 4, false);
  const skip = Math.ceil(decades / 7);
  const found = [];
  for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++) {
    if (k % skip) continue;
    for (const m of decades <= 2 ? [1, 2, 5] : [1]) found.push(Number((m * 10 ** k).toPrecision(10)));
  }
  return found.filter((value) => value >= low && value <= high);
}

// The unit in which a time is read, and its seconds.
function timeUnit(seconds) {
  if (seconds < 300) return ["s", 1];
  return seconds < 7200 ? ["min", 60] : ["h", 3600];
}

// Where epochs and values lie on the canvas; `across` goes back from a pixel to epochs.
function scales(panel, width, height, range) {
  const plot = {
    left: BOX.left, right: width - BOX.right, top: BOX.top, bottom: height - BOX.bottom,
  };
  const [x0, x1] = panel.span.map((x) => toAxis(panel, x));
  const up = panel.log ? Math.log : (y) => y;
  const [low, high] = range.map(up);
  const wide = (plot.right - plot.left) / (x1 - x0 || 1);
  const ax = (value) => plot.left + (value - x0) * wide; // from a value of the axis
  const column = COLUMN[panel.axis];
  // From a row of this run, which knows its step and time, or from epochs.
  const sx = (x) => ax(typeof x === "number" ? toAxis(panel, x) : x.length > 2 ? x[column] : toAxis(panel, x[0]));
  const sy = (y) => plot.bottom - ((up(y) - low) / (high - low)) * (plot.bottom - plot.top);
  return { plot, sx, sy, ax, ends: [x0, x1] };
}

function across(panel, pixel) {
  const part = (pixel - BOX.left) / (panel.canvas.clientWidth - BOX.left - BOX.right);
  const [x0, x1] = panel.span.map((x) => toAxis(panel, x));
  return fromAxis(panel, x0 + part * (x1 - x0));
}

function drawPanel(panel) {
  const { canvas } = panel;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (!width || !height) return;
  const pen = penOf(canvas, width, height);
  const { tone } = pen;
  const range = yRange(panel);
  const { plot, sx, sy, ax, ends } = scales(panel, width, height, range);
  pen.font = `${FONT}px ${pen.face}`;
  drawAxes(pen, plot, panel, range, ax, ends, sy, tone);
  pen.save();
  pen.beginPath();
  pen.rect(plot.left, plot.top - 4, plot.right - plot.left + 4, plot.bottom - plot.top + 8);
  pen.clip();
  drawBatches(pen, seen(panel, "train", "steps"), panel, sx, sy, tone("train"));
  drawOthers(pen, panel, sx, sy, tone);
  drawWhiskers(pen, seen(panel, "valid", "epochs"), panel, sx, sy, tone("valid"));
  for (const split of ["train", "valid"]) {
    drawMeans(pen, seen(panel, split, "epochs"), split, panel, sx, sy, tone(split));
  }
  pen.restore();
  drawSelection(pen, plot, panel, sx, tone("train"));
  drawCursor(panel, pen, plot, sx, sy, tone("quiet"));
  if (!tablesOf(panel).some((table) => table.length)) {
    pen.fillStyle = tone("ink");
    pen.textAlign = "center";
    pen.fillText(panel.empty, (plot.left + plot.right) / 2, (plot.top + plot.bottom) / 2);
  }
  canvas.setAttribute("aria-label", describe(panel));
}

function drawAxes(pen, plot, panel, range, ax, ends, sy, tone) {
  const crisp = (value) => Math.round(value) + 0.5; // one sharp pixel, not two gray ones
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
  for (const value of panel.log ? logTicks(range) : ticks(range, 5, false)) {
    pen.strokeStyle = tone("grid");
    rule(plot.left, crisp(sy(value)), plot.right, crisp(sy(value)));
    pen.fillStyle = tone("ink");
    const small = value && Math.abs(value) < 1e-4;
    const large = Math.abs(value) >= 1e5;
    pen.fillText(small || large ? value.toExponential() : String(value), plot.left - 7, sy(value));
  }
  pen.textAlign = "center";
  pen.strokeStyle = tone("quiet");
  const [unit, scale] = panel.axis === 2 ? timeUnit(ends[1]) : ["", 1];
  const span = ends.map((value) => value / scale);
  for (const value of ticks(span, 6, panel.axis === 1 || (!panel.axis && span[1] - span[0] >= 2))) {
    const x = ax(value * scale);
    rule(crisp(x), plot.bottom, crisp(x), plot.bottom + 4);
    pen.fillText(String(value), x, plot.bottom + 14);
  }
  rule(crisp(plot.left), plot.top, crisp(plot.left), plot.bottom);
  rule(plot.left, crisp(plot.bottom), plot.right, crisp(plot.bottom));
  pen.fillText(["epoch", "step", `time (${unit})`][panel.axis], (plot.left + plot.right) / 2, plot.bottom + 31);
}

function trace(pen, part, sx, sy, column) {
  part.forEach((row, i) => pen[i ? "lineTo" : "moveTo"](sx(row), sy(row[column])));
}

// The batches: their range as a band, their mean faint, and its smoothed form strong.
function drawBatches(pen, table, panel, sx, sy, tone) {
  pen.fillStyle = pen.strokeStyle = tone;
  pen.lineJoin = "round";
  const alone = !panel.kinds.includes("epochs") && !panel.smoothing;
  const floor = panel.log ? Number.MIN_VALUE : -Infinity;
  for (const part of unbroken(table, panel.log)) {
    pen.globalAlpha = panel.smoothing ? 0.1 : 0.18;
    pen.beginPath();
    trace(pen, part, sx, sy, 3);
    for (const row of part.toReversed()) {
      pen.lineTo(sx(row), row[2] > floor ? sy(row[2]) : sy(row[1]));
    }
    pen.fill();
    pen.globalAlpha = alone ? 1 : panel.smoothing ? 0.4 : 0.5;
    pen.lineWidth = alone ? 1.5 : 1;
    pen.beginPath();
    trace(pen, part, sx, sy, 1);
    pen.stroke();
  }
  pen.globalAlpha = 1;
  if (!panel.smoothing) return;
  pen.lineWidth = 2;
  for (const part of unbroken(smooth(table, panel.smoothing), panel.log)) {
    pen.beginPath();
    trace(pen, part, sx, sy, 1);
    pen.stroke();
  }
}

function drawWhiskers(pen, table, panel, sx, sy, tone) {
  pen.strokeStyle = tone;
  pen.globalAlpha = 0.25;
  pen.lineWidth = 3;
  for (const row of table) {
    const [, mean, low, high] = row;
    if (panel.log && !(mean > 0)) continue;
    pen.beginPath();
    pen.moveTo(sx(row), sy(panel.log && low <= 0 ? mean : low));
    pen.lineTo(sx(row), sy(high));
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

function drawMeans(pen, table, split, panel, sx, sy, tone) {
  pen.fillStyle = pen.strokeStyle = tone;
  pen.lineWidth = 2;
  pen.lineJoin = "round";
  for (const part of unbroken(table, panel.log)) {
    pen.setLineDash(DASH[split]);
    pen.beginPath();
    trace(pen, part, sx, sy, 1);
    pen.stroke();
    pen.setLineDash([]);
    if (table.length > 60) continue;
    const size = table.length > 20 ? 2.2 : 3.2;
    for (const row of part) {
      const [x, y] = [sx(row), sy(row[1])];
      pen.beginPath();
      if (split === "train") pen.arc(x, y, size, 0, 7);
      else pen.rect(x - size, y - size, 2 * size, 2 * size);
      pen.fill();
    }
  }
}

// Other runs: color, dash and mark tell which; the thin line is train.
function drawOthers(pen, panel, sx, sy, tone) {
  for (const { run, split, table } of panel.others) {
    pen.fillStyle = pen.strokeStyle = tone(`line${run + 2}`);
    pen.lineWidth = split === "train" ? 1 : 2;
    pen.globalAlpha = split === "train" ? 0.75 : 1;
    pen.setLineDash(split === "train" ? [] : RUN_DASH[run]);
    for (const part of unbroken(table, panel.log)) {
      pen.beginPath();
      trace(pen, part, sx, sy, 1);
      pen.stroke();
    }
    pen.setLineDash([]);
    const every = Math.ceil(table.length / 12);
    const shape = new Path2D(OUTLINES[MARKS[run]]);
    table.forEach((row, i) => {
      if (i % every || split === "train" || !Number.isFinite(sy(row[1]))) return;
      pen.save();
      pen.translate(sx(row[0]), sy(row[1]));
      pen.scale(3.4, 3.4);
      pen.fill(shape);
      pen.restore();
    });
  }
  pen.globalAlpha = 1;
}

function drawSelection(pen, plot, panel, sx, tone) {
  if (!panel.drag || !panel.drag.wide) return;
  const [from, to] = [panel.drag.from, panel.drag.to].map(sx);
  pen.fillStyle = tone;
  pen.globalAlpha = 0.15;
  pen.fillRect(Math.min(from, to), plot.top, Math.abs(to - from), plot.bottom - plot.top);
  pen.globalAlpha = 1;
}

function drawCursor(panel, pen, plot, sx, sy, tone) {
  const at = panel.view.cursor; // one for all charts
  const outside = at < panel.span[0] || at > panel.span[1];
  const lines = at === null || outside ? [] : readOut(panel);
  panel.tip.hidden = !lines.length;
  if (!lines.length) return;
  const x = sx(at);
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
  const step = nearest(find(panel, "train", "steps"), at);
  const high = step && sy(step[1]) < (plot.top + plot.bottom) / 2; // keep the curve in sight
  panel.tip.style.top = `${high ? plot.bottom - panel.tip.offsetHeight - 4 : plot.top + 4}px`;
}
