// The tensor view: cells on a canvas, a histogram, a reading.
//
// Python sends `frame` (what there is to know) and `data` (a color per cell as int8,
// then a byte of marks per cell; red, green and blue of a picture in color), and `curve`
// for rank 1. The page sends back `cell`, the element under the pointer or chosen by
// keys, and Python answers with its exact `reading`; {do: "zoom", by, at} and
// {do: "part", part} ask for a part of the plane.

const EMPTY = -128;
const MARKS = [["NaN", 1, "✕"], ["inf", 2, "▲"], ["-inf", 4, "▼"], ["far outside", 8, "◆"]];
const CURVE = 190; // how high a curve is
const ODD = { nan: "✕ NaN", inf: "▲ inf", "-inf": "▼ −inf" };
const BOX = { left: 58, right: 6, top: 36, bottom: 6 };
const TALLEST = 400;
const THIN = 6; // below this, cells need not be square
const ANSWER_EVERY = 80; // milliseconds between two questions to Python

function render({ model, el }) {
  const view = build(el);
  const state = { model, view, at: null, byKeys: false, timer: 0, asked: false };
  let waiting = 0;

  function redraw() {
    if (waiting) return; // one drawing per screen refresh, however many reasons
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      drawMap(state);
      drawBars(state);
    });
  }
  state.redraw = redraw;

  function showFrame() {
    state.frame = model.get("frame");
    const [rows, columns] = state.frame.cells || [0, 0];
    const bytes = bytesOf(model.get("data"));
    state.pixels = state.frame.rgb ? bytes : null;
    state.curve = state.frame.names[0] ? null : floatsOf(model.get("curve"));
    state.codes = new Int8Array(bytes.slice(0, rows * columns).buffer);
    state.marks = bytes.slice(rows * columns);
    writeFacts(state);
    showCell();
  }

  function showCell() {
    if (!state.asked) state.at = blockOf(state.frame, model.get("cell"));
    writeReading(state);
    redraw();
  }

  function showTrouble() {
    view.trouble.textContent = model.get("trouble");
  }

  const listeners = {
    "change:frame": showFrame,
    "change:cell": showCell,
    "change:reading": showCell,
    "change:trouble": showTrouble,
  };
  const unfollow = follow(model, listeners);
  const events = listen(state);
  const stopTheme = watchTheme(redraw);
  const sizes = new ResizeObserver(redraw);
  sizes.observe(view.root);
  showFrame();
  showTrouble();

  return () => {
    unfollow();
    events.abort();
    clearTimeout(state.timer);
    cancelAnimationFrame(waiting);
    sizes.disconnect();
    stopTheme();
    el.replaceChildren();
  };
}

export default { render };

// ── the page ────────────────────────────────────────────────────────────────

function build(el) {
  const root = make("div", "bb-view bb-tensor", el);
  const trouble = make("div", "bb-fault", root, { role: "alert" });
  const head = make("div", "bb-tensor-head", root);
  const sides = make("div", "bb-tensor-sides", root);
  const figure = make("figure", "bb-tensor-map", sides);
  const canvas = make("canvas", "", figure, { tabindex: 0, role: "img" });
  const reading = make("div", "bb-tensor-reading", figure);
  const tools = make("div", "bb-tensor-tools", figure, { role: "group", "aria-label": "part of the plane" });
  const key = make("figcaption", "bb-tensor-key", figure);
  const beside = make("div", "bb-tensor-beside", sides);
  const table = make("table", "", beside, { "aria-label": "statistics" });
  const bars = make("canvas", "", beside, { role: "img" });
  const note = make("div", "bb-tensor-note", beside);
  const live = make("div", "bb-live", root, { "aria-live": "polite", role: "status" });
  return { root, trouble, head, canvas, reading, tools, key, table, bars, note, live };
}

function writeFacts(state) {
  const { view, frame } = state;
  writeTools(state);
  view.head.textContent = frame.head;
  // As wide as the cells, so that the statistics stand beside them.
  const wide = state.curve ? 620 : Math.max(360, 56 * frame.cells[1] + BOX.left + BOX.right);
  view.canvas.parentNode.style.maxWidth = `min(620px, ${wide}px)`;
  view.canvas.setAttribute("aria-label", `${state.curve ? "curve" : frame.rgb ? "picture" : "heat map"}, ${frame.title}. Arrow keys read the cells.`);
  view.table.replaceChildren();
  const top = make("tr", "", make("thead", "", view.table));
  const [headings, ...rows] = frame.table;
  for (const name of headings) {
    make(name ? "th" : "td", "", top, name ? { scope: "col" } : {}).textContent = name;
  }
  const body = make("tbody", "", view.table);
  for (const [name, ...texts] of rows) {
    const odd = MARKS.some(([mark]) => mark === name) && texts[0] !== "0";
    const row = make("tr", odd ? "bb-odd" : "", body);
    make("th", "", row, { scope: "row" }).textContent = name;
    for (const text of texts) make("td", "", row).textContent = text;
  }
  view.key.replaceChildren();
  if (frame.known && !state.curve && !frame.rgb) {
    const ramp = make("span", `bb-tensor-ramp ${frame.signed ? "bb-signed" : ""}`, view.key);
    make("span", "", ramp).textContent = frame.ends[0];
    make("i", "", ramp, { "aria-hidden": "true" });
    make("span", "", ramp).textContent = frame.ends[1];
  }
  const tell = (text) => (make("span", "", view.key).textContent = text);
  if (frame.signed && frame.known && !state.curve && !frame.rgb) tell("orange, −: below 0");
  if (frame.scale === "logarithmic") tell("logarithmic colors");
  for (const [name, , sign] of MARKS) if (frame.marks[name]) tell(`${sign} ${name}: ${frame.marks[name]}`);
  if (frame.means) tell(frame.means + (state.curve ? "; the band goes from least to largest" : ""));
  writeNote(view, frame.bars);
}

// Buttons that zoom, where there is more than what one sees at once.
function writeTools(state) {
  const { view, frame, model } = state;
  const { tools } = view;
  const [rows, columns] = frame.whole;
  const part = frame.shape[0] < rows || frame.shape[1] < columns;
  const worth = part || rows > 8 || columns > 8;
  const held = document.activeElement?.dataset?.tool;
  tools.replaceChildren();
  tools.hidden = !worth;
  if (!worth) return;
  const button = (text, name, act, off = false) => {
    const made = make("button", "bb-tensor-tool", tools, { type: "button", "aria-label": name, title: name, "data-tool": name }, text);
    made.disabled = off;
    made.addEventListener("click", act);
    if (held === name && !off) made.focus();
  };
  button("−", "zoom out", () => zoom(state, 0.5), !part);
  button("+", "zoom in", () => zoom(state, 2), frame.shape[0] <= 8 && frame.shape[1] <= 8);
  button("All", "the whole plane", () => model.send({ do: "part", part: null }), !part);
  const [top, left] = frame.corner;
  const shown = (first, size) => `${first} … ${first + size - 1}`;
  const text = frame.names[0] ? `rows ${shown(top, frame.shape[0])}, columns ` : "";
  if (part) make("span", "", tools, {}, `${text}${shown(left, frame.shape[1])} of ${frame.names[0] ? `${rows} × ` : ""}${columns}`);
  else make("span", "bb-tensor-hint", tools, {}, "+ and − zoom at the cell; drag moves a part");
}

function zoom(state, by) {
  const at = state.at ? elementOf(state.frame, state.at) : null;
  state.model.send({ do: "zoom", by, at });
}

// The first element of the plane that a cell stands for.
function elementOf(frame, at) {
  return at.map((block, i) => frame.corner[i] + block * frame.step[i]);
}

// Move the part that is shown by so many cells.
function shift(state, down, across) {
  const { frame, model } = state;
  const place = frame.corner.map((first, i) => {
    const wanted = Math.round(first + [down, across][i] * frame.step[i]);
    return Math.max(0, Math.min(wanted, frame.whole[i] - frame.shape[i]));
  });
  if (String(place) !== String(frame.corner)) model.send({ do: "part", part: [...place, ...frame.shape] });
}

function writeNote(view, bars) {
  const parts = [];
  if (bars.own?.length) parts.push("bars: the tensor; dashes: this plane, on its own scale");
  if (bars.every > 1) parts.push(`counted: every ${bars.every}th element`);
  view.note.textContent = parts.join(" · ");
  const ends = bars.ends ? ` from ${bars.ends[0]} to ${bars.ends[1]}` : ": no finite element";
  view.bars.setAttribute("aria-label", `histogram${ends}`);
  view.bars.hidden = !bars.ends;
}

// ── one cell ────────────────────────────────────────────────────────────────

function blockOf(frame, cell) {
  if (!cell || !cell.length) return null;
  const at = cell.map((place, i) => Math.floor((place - frame.corner[i]) / frame.step[i]));
  return at.every((place, i) => place >= 0 && place < frame.cells[i]) ? at : null;
}

function writeReading(state) {
  const { view, frame, model, at } = state;
  const reading = model.get("reading");
  const answered = at && String(blockOf(frame, reading.cell)) === String(at);
  const hint = frame.cells[0] * frame.cells[1]
    ? "Point at a cell, or walk with the arrow keys."
    : "No element to show.";
  view.reading.textContent = !at ? hint : answered ? reading.text : `${guess(state)} …`;
  state.mark = answered ? reading.at : null;
  if (answered && state.byKeys && view.live.textContent !== reading.text) {
    view.live.textContent = reading.text;
  }
}

// What the page knows itself, until Python answers (it may be busy).
function guess({ frame, at: [row, column] }) {
  const place = [row, column].map((block, i) => {
    const first = frame.corner[i] + block * frame.step[i];
    const last = Math.min(first + frame.step[i], frame.corner[i] + frame.shape[i]) - 1;
    return last > first ? `${first}…${last}` : `${first}`;
  });
  const text = frame.texts[row * frame.cells[1] + column];
  const where = frame.names[0] ? `row ${place[0]}, column ${place[1]}` : `column ${place[1]}`;
  return text ? `${where}: ${text}` : where;
}

function moveTo(state, at, byKeys) {
  if (String(at) === String(state.at)) return;
  state.at = at;
  state.byKeys = byKeys;
  state.asked = true;
  writeReading(state);
  state.redraw();
  if (state.timer) return;
  state.timer = setTimeout(() => {
    state.timer = 0;
    state.asked = false;
    const { model, frame } = state;
    model.set("cell", state.at ? elementOf(frame, state.at) : []);
    model.save_changes();
  }, ANSWER_EVERY);
}

function listen(state) {
  const events = new AbortController();
  const { canvas } = state.view;
  const on = (name, act) => canvas.addEventListener(name, act, { signal: events.signal });
  on("pointermove", (event) => {
    const plot = layout(state);
    const column = Math.floor((event.offsetX - BOX.left) / plot.w);
    const row = Math.floor((event.offsetY - BOX.top) / plot.h);
    const [rows, columns] = state.frame.cells;
    if (row >= 0 && row < rows && column >= 0 && column < columns) moveTo(state, [row, column], false);
  });
  on("keydown", (event) => walk(state, event));
  on("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (state.wheeled > Date.now() - 250) return;
    state.wheeled = Date.now();
    zoom(state, event.deltaY < 0 ? 2 : 0.5);
  });
  on("pointerdown", (down) => {
    if (down.button) return;
    const { w, h } = layout(state);
    const stop = new AbortController();
    addEventListener(
      "pointerup",
      (up) => {
        stop.abort();
        const [x, y] = [up.clientX - down.clientX, up.clientY - down.clientY];
        if (Math.hypot(x, y) > 6) shift(state, Math.round(-y / h), Math.round(-x / w));
      },
      { signal: stop.signal },
    );
  });
  return events;
}

// Arrow keys walk, Page Up and Down go ten rows, Home and End to the ends of the row
// (with Control: of the plane), Escape lets go.
function walk(state, event) {
  const [rows, columns] = state.frame.cells;
  if (!rows || !columns || event.altKey || event.metaKey) return;
  if (event.key === "+" || event.key === "-") {
    event.preventDefault();
    event.stopPropagation();
    zoom(state, event.key === "+" ? 2 : 0.5);
    return;
  }
  const [row, column] = state.at || [0, 0];
  const first = state.at ? 1 : 0; // the first key finds the corner
  const to = {
    ArrowRight: [row, column + first],
    ArrowLeft: [row, column - first],
    ArrowDown: [row + first, column],
    ArrowUp: [row - first, column],
    PageDown: [row + 10, column],
    PageUp: [row - 10, column],
    Home: [event.ctrlKey ? 0 : row, 0],
    End: [event.ctrlKey ? rows - 1 : row, columns - 1],
    Escape: null,
  };
  if (!(event.key in to)) return;
  event.preventDefault();
  event.stopPropagation(); // the notebook moves between cells with the same keys
  if (state.at && event.key === "ArrowRight" && column + 1 === columns) shift(state, 0, columns / 2);
  if (state.at && event.key === "ArrowLeft" && column === 0) shift(state, 0, -columns / 2);
  if (state.at && event.key === "ArrowDown" && row + 1 === rows) shift(state, rows / 2, 0);
  if (state.at && event.key === "ArrowUp" && row === 0) shift(state, -rows / 2, 0);
  const target = to[event.key];
  moveTo(state, target && [inside(target[0], rows), inside(target[1], columns)], true);
}

// ── the map ─────────────────────────────────────────────────────────────────

// Cells are square where the shape allows it, and never too thin to see.
function layout({ view, frame, curve }) {
  const [rows, columns] = frame.cells;
  const room = Math.max(40, view.canvas.clientWidth - BOX.left - BOX.right);
  if (curve) return { w: room / Math.max(1, columns), h: CURVE, rows, columns };
  const across = Math.min(56, room / Math.max(1, columns));
  const down = Math.min(56, TALLEST / Math.max(1, rows));
  const side = Math.min(across, down);
  const w = Math.max(side, Math.min(across, frame.texts.length ? 44 : THIN));
  return { w, h: Math.max(side, Math.min(down, frame.texts.length ? 22 : THIN)), rows, columns };
}

function prepare(canvas, height) {
  canvas.style.height = `${height}px`;
  const width = canvas.clientWidth;
  if (!width || !height) return null;
  const pen = penOf(canvas, width, height);
  pen.font = `11.5px ${pen.face}`;
  return { pen, width, tone: pen.tone };
}

function drawMap(state) {
  const { frame, codes, marks } = state;
  const plot = layout(state);
  const { w, h, rows, columns } = plot;
  const ready = prepare(state.view.canvas, BOX.top + Math.max(rows * h, 24) + BOX.bottom);
  if (!ready) return;
  const { pen, tone } = ready;
  pen.save();
  pen.translate(BOX.left, BOX.top);
  if (!rows || !columns) {
    pen.fillStyle = tone("ink");
    pen.fillText(`empty: ${frame.shape[0]} × ${frame.shape[1]}`, 0, 14);
    pen.restore();
    return;
  }
  if (state.curve) {
    drawCurve(pen, plot, state, tone);
    pen.restore();
    drawLabels(pen, plot, frame, tone);
    return;
  }
  if (state.pixels) {
    drawPixels(pen, plot, state.pixels);
    if (state.at) drawFocus(pen, plot, state.at, tone);
    pen.restore();
    drawLabels(pen, plot, frame, tone);
    return;
  }
  const numbers = frame.texts.length > 0 && w >= 40 && h >= 17;
  drawCells(pen, plot, codes, tone, numbers ? 0.55 : 0.85);
  if (numbers) drawNumbers(pen, plot, frame.texts, tone);
  else drawDashes(pen, plot, codes, tone);
  if (!numbers) drawMarks(pen, plot, marks, tone);
  pen.strokeStyle = tone("quiet");
  pen.lineWidth = 1;
  pen.strokeRect(0.5, 0.5, Math.round(columns * w), Math.round(rows * h));
  if (state.at) drawFocus(pen, plot, state.at, tone);
  pen.restore();
  drawLabels(pen, plot, frame, tone);
}

// A line over the places, a band from the least to the largest where they stand for
// several, marks at the bottom for what is not finite.
function drawCurve(pen, { w, h, columns }, { curve, marks, at, frame }, tone) {
  const [means, least, most] = [0, 1, 2].map((i) => curve.subarray(i * columns, (i + 1) * columns));
  const known = [...least, ...most].filter(Number.isFinite);
  let [low, high] = [Math.min(0, ...known), Math.max(0, ...known)];
  if (frame.scale === "middle 98 %") {
    const ends = frame.ends.map((text) => Number(text.replace(/[≤≥ ]/g, "")));
    if (ends.every(Number.isFinite)) [low, high] = [Math.min(0, ends[0]), Math.max(0, ends[1])];
  }
  if (high <= low) high = low + 1;
  const log = frame.scale === "logarithmic";
  const unit = Math.max(...known.map(Math.abs), 1e-300) / 1e4;
  const bend = (value) => (log ? Math.sign(value) * Math.log1p(Math.abs(value) / unit) : value);
  const [bottom, top] = [bend(low), bend(high)];
  const y = (value) => h - 4 - ((bend(Math.min(Math.max(value, low), high)) - bottom) / (top - bottom)) * (h - 8);
  const x = (place) => (place + 0.5) * w;
  pen.strokeStyle = tone("quiet");
  pen.strokeRect(0.5, 0.5, Math.round(columns * w), h);
  pen.beginPath();
  pen.moveTo(0, y(0));
  pen.lineTo(columns * w, y(0));
  pen.stroke();
  pen.strokeStyle = pen.fillStyle = tone("blue");
  pen.lineWidth = 1.6;
  for (let first = 0; first < columns; first++) {
    if (!Number.isFinite(means[first])) continue;
    let last = first;
    while (last + 1 < columns && Number.isFinite(means[last + 1])) last++;
    if (frame.step[1] > 1) {
      pen.globalAlpha = 0.25;
      pen.beginPath();
      for (let i = first; i <= last; i++) pen.lineTo(x(i), y(most[i]));
      for (let i = last; i >= first; i--) pen.lineTo(x(i), y(least[i]));
      pen.fill();
      pen.globalAlpha = 1;
    }
    pen.beginPath();
    for (let i = first; i <= last; i++) pen.lineTo(x(i), y(means[i]));
    pen.stroke();
    if (w >= 8 || first === last) {
      for (let i = first; i <= last; i++) pen.fillRect(x(i) - 2, y(means[i]) - 2, 4, 4);
    }
    first = last;
  }
  drawMarks(pen, { w, h: 16, columns }, marks, tone);
  pen.fillStyle = tone("ink");
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const short = (value) => String(Number(value.toPrecision(3))).replace("-", "−");
  if (low < 0) pen.fillText(short(low), -6, h - 5);
  pen.fillText("0", -6, Math.min(h - (low < 0 ? 18 : 5), Math.max(y(0), high > 0 ? 18 : 5)));
  if (high > 0) pen.fillText(short(high), -6, 6);
  if (!at) return;
  pen.strokeStyle = tone("ink");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(x(at[1]), 0);
  pen.lineTo(x(at[1]), h);
  pen.stroke();
  if (Number.isFinite(means[at[1]])) pen.fillRect(x(at[1]) - 3, y(means[at[1]]) - 3, 6, 6);
}

function drawPixels(pen, { w, h, rows, columns }, pixels) {
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const i = 3 * (row * columns + column);
      const [left, top] = [Math.round(column * w), Math.round(row * h)];
      pen.fillStyle = `rgb(${pixels[i]},${pixels[i + 1]},${pixels[i + 2]})`;
      pen.fillRect(left, top, Math.round((column + 1) * w) - left, Math.round((row + 1) * h) - top);
    }
  }
}

function drawCells(pen, { w, h, rows, columns }, codes, tone, deepest) {
  const above = tone("blue");
  const below = tone("orange");
  for (let row = 0; row < rows; row++) {
    const top = Math.round(row * h);
    const height = Math.round((row + 1) * h) - top;
    for (let column = 0; column < columns; column++) {
      const code = codes[row * columns + column];
      if (code === 0 || code === EMPTY) continue;
      const left = Math.round(column * w);
      pen.fillStyle = code > 0 ? above : below;
      pen.globalAlpha = 0.04 + (deepest - 0.04) * (Math.abs(code) / 127);
      pen.fillRect(left, top, Math.round((column + 1) * w) - left, height);
    }
  }
  pen.globalAlpha = 1;
}

function drawNumbers(pen, { w, h, columns }, texts, tone) {
  pen.fillStyle = tone("ink");
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  texts.forEach((text, i) => {
    const [x, y] = [((i % columns) + 0.5) * w, (Math.floor(i / columns) + 0.5) * h];
    pen.fillText(ODD[text] || text.replace("-", "−"), x, y, w - 2);
  });
}

function drawDashes(pen, { w, h, columns }, codes, tone) {
  if (Math.min(w, h) < 8) return;
  pen.fillStyle = tone("ink");
  const length = Math.min(w, h) * 0.4;
  codes.forEach((code, i) => {
    if (code >= 0 || code === EMPTY) return;
    const [x, y] = [((i % columns) + 0.5) * w, (Math.floor(i / columns) + 0.5) * h];
    pen.fillRect(x - length / 2, y - 0.5, length, 1.2);
  });
}

// A cross for NaN, a triangle up for inf, down for -inf: never too small to see.
function drawMarks(pen, { w, h, columns }, marks, tone) {
  const size = Math.min(Math.max(Math.min(w, h) * 0.3, 3.5), 6);
  pen.strokeStyle = tone("ink");
  pen.lineWidth = 1.5;
  pen.beginPath();
  marks.forEach((mark, i) => {
    if (!mark) return;
    const [x, y] = [((i % columns) + 0.5) * w, (Math.floor(i / columns) + 0.5) * h];
    if (mark & 1) {
      pen.moveTo(x - size, y - size);
      pen.lineTo(x + size, y + size);
      pen.moveTo(x + size, y - size);
      pen.lineTo(x - size, y + size);
    }
    if (mark & 8) {
      pen.moveTo(x, y - size);
      pen.lineTo(x + size, y);
      pen.lineTo(x, y + size);
      pen.lineTo(x - size, y);
      pen.closePath();
    }
    for (const way of [mark & 2 ? 1 : 0, mark & 4 ? -1 : 0]) {
      if (!way) continue;
      pen.moveTo(x, y - way * size);
      pen.lineTo(x + size, y + way * size);
      pen.lineTo(x - size, y + way * size);
      pen.closePath();
    }
  });
  pen.stroke();
}

function drawFocus(pen, { w, h }, [row, column], tone) {
  const [wide, high] = [Math.max(w, 7), Math.max(h, 7)];
  const [x, y] = [(column + 0.5) * w - wide / 2, (row + 0.5) * h - high / 2];
  pen.lineWidth = 2;
  pen.strokeStyle = tone("ink");
  pen.strokeRect(Math.round(x), Math.round(y), Math.round(wide), Math.round(high));
}

// Round positions: multiples of 1, 2 or 5 times a power of ten, as far apart as asked.
function stops(size, least, from = 0) {
  let step = 1;
  for (let i = 0; step < least; i++) step = [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3);
  const found = [];
  for (let place = Math.ceil(from / step) * step; place < from + size; place += step) found.push(place);
  return found;
}

function drawLabels(pen, { w, h, rows, columns }, frame, tone) {
  const [down, across] = frame.step;
  pen.fillStyle = tone("ink");
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  const [top, left] = frame.corner;
  const wide = pen.measureText(String(left + frame.shape[1])).width + 12;
  for (const place of stops(frame.shape[1], (wide / w) * across, left)) {
    pen.fillText(String(place), BOX.left + (Math.floor((place - left) / across) + 0.5) * w, BOX.top - 9);
  }
  pen.textAlign = "left";
  pen.fillText(`${frame.names[1]} →`, BOX.left, BOX.top - 26);
  pen.textAlign = "right";
  if (!frame.names[0]) return;
  for (const place of stops(frame.shape[0], (16 / h) * down, top)) {
    pen.fillText(String(place), BOX.left - 6, BOX.top + (Math.floor((place - top) / down) + 0.5) * h);
  }
  pen.fillText(`${frame.names[0]} ↓`, BOX.left - 6, BOX.top - 26);
}

// ── the histogram ───────────────────────────────────────────────────────────

function drawBars(state) {
  const { bars } = state.frame;
  if (!bars.ends) return;
  const ready = prepare(state.view.bars, 120);
  if (!ready) return;
  const { pen, width, tone } = ready;
  const [left, right, bottom, top] = [4, width - 4, 98, 18];
  const wide = (right - left) / bars.all.length;
  const most = Math.max(...bars.all);
  pen.fillStyle = tone("blue");
  pen.globalAlpha = 0.65;
  bars.all.forEach((count, i) => {
    const height = count ? Math.max(1, ((bottom - top) * count) / most) : 0;
    pen.fillRect(left + i * wide, bottom - height, Math.max(1, wide - 1), height);
  });
  pen.globalAlpha = 1;
  if (bars.own.length) drawOutline(pen, bars.own, [left, bottom, top, wide], tone("orange"));
  pen.strokeStyle = tone("quiet");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(left, bottom + 0.5);
  pen.lineTo(right, bottom + 0.5);
  pen.stroke();
  pen.fillStyle = tone("ink");
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  pen.fillText(bars.ends[0], left, bottom + 12);
  pen.textAlign = "right";
  pen.fillText(bars.ends[1], right, bottom + 12);
  pen.fillText(`highest bar ${most.toLocaleString("en")}`, right, 7);
  if (typeof state.mark === "number") drawNeedle(pen, left + state.mark * (right - left), bottom, tone);
}

function drawOutline(pen, counts, [left, bottom, top, wide], tone) {
  const most = Math.max(...counts, 1);
  pen.strokeStyle = tone;
  pen.lineWidth = 1.5;
  pen.setLineDash([5, 3]);
  pen.beginPath();
  pen.moveTo(left, bottom);
  counts.forEach((count, i) => {
    const y = bottom - ((bottom - top) * count) / most;
    pen.lineTo(left + i * wide, y);
    pen.lineTo(left + (i + 1) * wide, y);
  });
  pen.lineTo(left + counts.length * wide, bottom);
  pen.stroke();
  pen.setLineDash([]);
}

// Where the cell that is read lies among the others.
function drawNeedle(pen, x, bottom, tone) {
  pen.fillStyle = pen.strokeStyle = tone("ink");
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(x, 16);
  pen.lineTo(x, bottom);
  pen.stroke();
  pen.beginPath();
  pen.moveTo(x, bottom);
  pen.lineTo(x - 4, bottom + 6);
  pen.lineTo(x + 4, bottom + 6);
  pen.fill();
}
