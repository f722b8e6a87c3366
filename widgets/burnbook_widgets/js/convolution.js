// A convolution: input, kernel, output, and one window.
//
// Python sends `frame` (sizes and geometry) and `data` (float32: input, kernel, output).
// The page sends back `at`, the output cell that is looked at; it moves the window at
// once, and Python answers with the sum written out.

const TALLEST = 300;
const GAP = 2; // around the cells, for the frames of the outermost ones

function render({ model, el }) {
  const view = build(el);
  const state = { model, view, at: [0, 0], frame: null };
  let waiting = 0;

  function redraw() {
    if (waiting) return; // one drawing per screen refresh, however many reasons
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      if (state.frame.output) drawAll(state);
    });
  }

  function show() {
    state.frame = model.get("frame");
    if (!state.frame.output) return;
    cut(state, model.get("data"));
    state.at = model.get("at");
    view.head.textContent = state.frame.head;
    view.size.textContent = state.frame.size;
    name(state);
    tell();
  }

  function tell() {
    const reading = model.get("reading");
    const answered = String(reading.at) === String(state.at);
    const [row, column] = state.at;
    view.where.textContent = `output[${row}, ${column}]`;
    view.result.textContent = answered ? reading.result : "= …";
    view.sum.textContent = answered ? [reading.products, ...reading.rest].join(" ") : "…";
    if (answered && state.byKeys) {
      view.live.textContent = `row ${row}, column ${column}: ${reading.result.slice(2)}`;
    }
    redraw();
  }

  function moved() {
    if (String(model.get("at")) !== String(state.at)) state.at = model.get("at");
    tell();
  }

  const showFault = () => (view.fault.textContent = model.get("fault"));
  const listeners = {
    "change:frame": show,
    "change:data": show,
    "change:at": moved,
    "change:reading": tell,
    "change:fault": showFault,
  };
  const unfollow = follow(model, listeners);
  state.go = (at, byKeys) => {
    if (String(at) === String(state.at)) return;
    state.at = at;
    state.byKeys = byKeys;
    model.set("at", at);
    model.save_changes();
    tell();
  };
  const events = listen(state);
  const stopTheme = watchTheme(redraw);
  const sizes = new ResizeObserver(redraw);
  sizes.observe(view.root);
  show();
  showFault();

  return () => {
    unfollow();
    events.abort();
    cancelAnimationFrame(waiting);
    sizes.disconnect();
    stopTheme();
    el.replaceChildren();
  };
}

export default { render };

// ── the page ────────────────────────────────────────────────────────────────

function build(el) {
  // Keys that a focused picture knows are not for the notebook around it.
  const root = make("div", "bb-view bb-conv", el, { "data-lm-suppress-shortcuts": "true" });
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const head = make("div", "bb-conv-head", root);
  const size = make("div", "bb-conv-size", root);
  const stages = make("div", "bb-conv-stages", root);
  const parts = ["input", "kernel", "output"].map((kind) => {
    const figure = make("figure", `bb-conv-${kind}`, stages);
    const caption = make("figcaption", "", figure);
    const canvas = make("canvas", "", figure, { role: "img" });
    if (kind !== "kernel") canvas.tabIndex = 0;
    return { caption, canvas };
  });
  const line = make("div", "bb-conv-line", root);
  const where = make("b", "", line);
  const result = make("b", "bb-conv-result", line);
  const sum = make("div", "bb-conv-sum", root);
  make("div", "bb-conv-keys", root).textContent =
    "Arrow keys, or a click on a cell, move the window. Orange and a dash: below 0.";
  const live = make("div", "bb-live", root, { role: "status", "aria-live": "polite" });
  return { root, fault, head, size, parts, where, result, sum, live };
}

function cut(state, data) {
  const { part, kernel } = state.frame;
  const all = floatsOf(data);
  const counts = [part.input[1], kernel, part.output[1]].map(([rows, columns]) => rows * columns);
  state.input = all.subarray(0, counts[0]);
  state.kernel = all.subarray(counts[0], counts[0] + counts[1]);
  state.output = all.subarray(counts[0] + counts[1]);
}

function name({ view, frame }) {
  const sizes = [frame.shape, frame.kernel, frame.output];
  view.parts.forEach(({ caption, canvas }, i) => {
    const [rows, columns] = sizes[i];
    caption.textContent = `${frame.channel[i]}${partText(frame, i)} ${rows} × ${columns}`;
    const keys = canvas.tabIndex === 0 ? ". Arrow keys move the window" : "";
    canvas.setAttribute("aria-label", `${frame.channel[i]}, ${rows} by ${columns}${keys}`);
  });
}

// Of a large picture only a part is shown: which one.
function partText(frame, i) {
  const [[top, left], [rows, columns]] = [frame.part.input, [[0, 0], frame.kernel], frame.part.output][i];
  const whole = [frame.shape, frame.kernel, frame.output][i];
  if (rows === whole[0] && columns === whole[1]) return " ·";
  return `[${top}…${top + rows - 1}, ${left}…${left + columns - 1}] of`;
}

// ── clicks and keys ─────────────────────────────────────────────────────────

function listen(state) {
  const events = new AbortController();
  const { parts } = state.view;
  const on = (canvas, name, act) => canvas.addEventListener(name, act, { signal: events.signal });
  const drag = (canvas, act) => {
    on(canvas, "pointerdown", act);
    on(canvas, "pointermove", (event) => event.buttons === 1 && act(event));
  };
  drag(parts[2].canvas, (event) => {
    const [corner, size] = state.frame.part.output;
    const cell = cellAt(parts[2].canvas, event, ...size);
    state.go(cell.map((place, dim) => place + corner[dim]), false);
  });
  drag(parts[0].canvas, (event) => {
    const { part, kernel, stride, dilation, output } = state.frame;
    const [corner, size] = part.grown;
    const cell = cellAt(parts[0].canvas, event, ...size).map((place, dim) => place + corner[dim]);
    // the window whose middle is nearest to the cell
    const at = cell.map((place, dim) => {
      const middle = (dilation[dim] * (kernel[dim] - 1)) / 2;
      return inside(Math.round((place - middle) / stride[dim]), output[dim]);
    });
    state.go(at, false);
  });
  for (const { canvas } of [parts[0], parts[2]]) on(canvas, "keydown", (event) => walk(state, event));
  return events;
}

function cellAt(canvas, event, rows, columns) {
  const side = sideOf(canvas, rows, columns);
  return [
    inside(Math.floor((event.offsetY - GAP) / side), rows),
    inside(Math.floor((event.offsetX - GAP) / side), columns),
  ];
}

// Arrow keys walk; Home and End go to the ends of the row (with Control: of the output);
// the space bar goes on as the convolution does, row by row (with Shift: back).
function walk(state, event) {
  if (event.altKey || event.metaKey) return;
  const [rows, columns] = state.frame.output;
  const [row, column] = state.at;
  const next = inside(row * columns + column + (event.shiftKey ? -1 : 1), rows * columns);
  const to = {
    ArrowRight: [row, column + 1],
    ArrowLeft: [row, column - 1],
    ArrowDown: [row + 1, column],
    ArrowUp: [row - 1, column],
    Home: [event.ctrlKey ? 0 : row, 0],
    End: [event.ctrlKey ? rows - 1 : row, columns - 1],
    " ": [Math.floor(next / columns), next % columns],
  }[event.key];
  if (!to) return;
  event.preventDefault();
  event.stopPropagation();
  state.go([inside(to[0], rows), inside(to[1], columns)], true);
}

// ── drawing ─────────────────────────────────────────────────────────────────

function sideOf(canvas, rows, columns) {
  const room = (canvas.parentNode.clientWidth || 300) - 2 * GAP;
  return Math.min(44, room / columns, TALLEST / rows);
}

function prepare(canvas, rows, columns, side) {
  const [width, height] = [columns * side + 2 * GAP, rows * side + 2 * GAP];
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = penOf(canvas, width, height);
  pen.translate(GAP, GAP);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  return pen;
}

function drawAll(state) {
  const { part, padding, kernel, stride, dilation } = state.frame;
  const [input, weights, made] = state.view.parts.map(({ canvas }) => canvas);
  const [corner, grown] = part.grown;
  let side = sideOf(input, ...grown);
  let pen = prepare(input, ...grown, side);
  // where the picture lies in what is shown of it and its padding
  const inner = part.input[0].map((place, dim) => place + padding[dim] - corner[dim]);
  pen.save();
  pen.translate(inner[1] * side, inner[0] * side);
  drawCells(pen, state.input, part.input[1], side, state.frame.signed[0]);
  pen.restore();
  drawPadding(pen, grown, inner, part.input[1], side);
  const first = state.at.map((place, dim) => place * stride[dim]);
  const taps = [];
  for (let i = 0; i < kernel[0]; i++) {
    for (let j = 0; j < kernel[1]; j++) {
      taps.push([first[0] + i * dilation[0] - corner[0], first[1] + j * dilation[1] - corner[1]]);
    }
  }
  drawFrames(pen, taps, side);

  const [from, size] = part.output;
  side = sideOf(made, ...size);
  pen = prepare(made, ...size, side);
  drawCells(pen, state.output, size, side, state.frame.signed[1]);
  drawFrames(pen, [state.at.map((place, dim) => place - from[dim])], side);

  // As wide as its cells, so that the output finds room beside it.
  weights.parentNode.style.flexBasis = `${Math.min(265, Math.max(185, 52 * kernel[1] + 5))}px`;
  side = Math.min(52, weights.parentNode.clientWidth / kernel[1] - 1, TALLEST / kernel[0]);
  pen = prepare(weights, ...kernel, side);
  drawCells(pen, state.kernel, kernel, side, true, false);
  const seen = taps.map(([row, column]) => {
    const [y, x] = [row - inner[0], column - inner[1]];
    const [rows, columns] = part.input[1];
    const known = y >= 0 && x >= 0 && y < rows && x < columns;
    return known ? state.input[y * columns + x] : 0;
  });
  drawProducts(pen, state.kernel, seen, kernel, side);
}

// A number in at most five signs, with a true minus.
function text(value) {
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "inf").replace("-", "−");
  const digits = Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(2)));
  return digits.replace("-", "−");
}

function drawCells(pen, values, [rows, columns], side, signed, numbers = true) {
  const finite = values.filter((value) => Number.isFinite(value));
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const written = numbers && side >= 26;
  const deepest = written || !numbers ? 0.55 : 0.85;
  const [above, below, ink] = ["blue", "orange", "ink"].map(pen.tone);
  const dash = side >= 8 && !written && numbers;
  values.forEach((value, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    const [x, y] = [Math.round(column * side), Math.round(row * side)];
    const [wide, high_] = [Math.round((column + 1) * side) - x, Math.round((row + 1) * side) - y];
    const flat = high > low ? (value - low) / (high - low) : 0.5;
    const share = Number.isFinite(value) ? (signed ? Math.abs(value) / most : flat) : 0;
    pen.globalAlpha = share ? 0.04 + (deepest - 0.04) * share : 0;
    pen.fillStyle = signed && value < 0 ? below : above;
    pen.fillRect(x, y, wide, high_);
    pen.globalAlpha = 1;
    pen.fillStyle = ink;
    if (written) {
      pen.font = `${Math.min(12, side / 2.9)}px ${pen.face}`;
      pen.fillText(text(value), x + wide / 2, y + high_ / 2, wide - 2);
    } else if (dash && signed && value < 0) {
      pen.fillRect(x + wide * 0.3, y + high_ / 2 - 0.5, wide * 0.4, 1.2);
    }
  });
  pen.strokeStyle = pen.tone("quiet");
  pen.lineWidth = 1;
  pen.strokeRect(0.5, 0.5, Math.round(columns * side) - 1, Math.round(rows * side) - 1);
}

// The zeros around the picture: thin slanted lines, and a frame around it all.
function drawPadding(pen, [rows, columns], [down, across], inner, side) {
  if (inner[0] === rows && inner[1] === columns) return;
  const [width, height] = [columns * side, rows * side];
  pen.save();
  pen.beginPath();
  pen.rect(0, 0, width, height);
  pen.rect(across * side, down * side, inner[1] * side, inner[0] * side);
  pen.clip("evenodd");
  pen.strokeStyle = pen.tone("quiet");
  pen.lineWidth = 1;
  pen.globalAlpha = 0.6;
  pen.beginPath();
  for (let x = -height; x < width; x += 9) {
    pen.moveTo(x, height);
    pen.lineTo(x + height, 0);
  }
  pen.stroke();
  pen.restore();
  pen.strokeStyle = pen.tone("quiet");
  pen.lineWidth = 1;
  pen.strokeRect(0.5, 0.5, Math.round(width) - 1, Math.round(height) - 1);
}

// A light line below the dark one, so that frames are seen on any color.
function drawFrames(pen, places, side) {
  for (const [tone, width] of [["paper", side >= 6 ? 4 : 3], ["ink", side >= 6 ? 2 : 1.2]]) {
    pen.strokeStyle = pen.tone(tone);
    pen.lineWidth = width;
    pen.beginPath();
    for (const [row, column] of places) pen.rect(column * side, row * side, side, side);
    pen.stroke();
  }
}

// In each cell of the kernel: what lies under it, times its weight.
function drawProducts(pen, weights, seen, [rows, columns], side) {
  if (side < 26) return;
  pen.fillStyle = pen.tone("ink");
  pen.strokeStyle = pen.tone("rule");
  pen.lineWidth = 1;
  weights.forEach((weight, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    const [x, y] = [(column + 0.5) * side, (row + 0.5) * side];
    pen.strokeRect(Math.round(column * side) + 0.5, Math.round(row * side) + 0.5, Math.round(side) - 1, Math.round(side) - 1);
    pen.font = `${Math.min(12, side / 3.6)}px ${pen.face}`;
    pen.fillText(text(seen[i]), x, y - side * 0.18, side - 3);
    pen.font = `600 ${Math.min(12, side / 3.6)}px ${pen.face}`;
    pen.fillText(`× ${text(weight)}`, x, y + side * 0.2, side - 3);
  });
}
