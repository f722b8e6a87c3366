// Attention: a map of shares with tokens, and the row one reads.
//
// Python sends `frame` (names) and `data` (uint16 shares, then a bit where hidden), and
// `thumbs`, small pictures of all heads. The page sends back `at` = [query, key], and
// {head} when a small picture is clicked; the first one is the mean of all.

const TALLEST = 420;
const TOP = 8; // keys that the list of a row names
const MEAN = -1;

function render({ model, el }) {
  const view = build(el);
  const state = { model, view, query: 0, key: null };
  let waiting = 0;

  function redraw() {
    if (waiting) return; // one drawing per screen refresh, however many reasons
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      if (!state.frame.keys) return;
      drawMap(state);
      drawThumbs(state);
    });
  }

  function show() {
    state.frame = model.get("frame");
    if (!state.frame.keys) return;
    const { tokens, keys } = state.frame;
    const bytes = bytesOf(model.get("data")).slice();
    const count = tokens.length * keys.length;
    state.shares = new Uint16Array(bytes.buffer, 0, count);
    const bits = bytes.subarray(2 * count);
    state.hidden = Uint8Array.from({ length: count }, (_, i) => (bits[i >> 3] >> (7 - (i % 8))) & 1);
    view.head.textContent = state.frame.title;
    view.note.textContent =
      `Deepest: ${state.frame.most}.` +
      (state.frame.hidden ? " Crossed out: hidden by a mask." : "") +
      " Arrow keys walk, or point at a row.";
    view.map.setAttribute("aria-label", `${state.frame.title}. Arrow keys read the rows.`);
    makeThumbs(state);
    moved();
  }

  function moved() {
    const [query, key] = model.get("at");
    [state.query, state.key] = [query || 0, key ?? null];
    tell();
  }

  function tell() {
    writeRow(state);
    redraw();
  }

  const showFault = () => (view.fault.textContent = model.get("fault"));
  const listeners = {
    "change:frame": show,
    "change:data": show,
    "change:at": moved,
    "change:fault": showFault,
  };
  const unfollow = follow(model, listeners);
  state.go = (query, key, byKeys) => {
    if (query === state.query && key === state.key) return;
    [state.query, state.key] = [query, key];
    model.set("at", key === null ? [query] : [query, key]);
    model.save_changes();
    tell();
    if (byKeys) view.live.textContent = view.reading.textContent;
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
  // Keys that a focused map knows are not for the notebook around it.
  const root = make("div", "bb-view bb-look", el, { "data-lm-suppress-shortcuts": "true" });
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const head = make("div", "bb-look-head", root);
  const heads = make("div", "bb-look-heads", root, { role: "group", "aria-label": "heads" });
  const sides = make("div", "bb-look-sides", root);
  const figure = make("figure", "bb-look-map", sides);
  const map = make("canvas", "", figure, { tabindex: 0, role: "img" });
  const note = make("figcaption", "bb-look-note", figure);
  const beside = make("div", "bb-look-beside", sides);
  const reading = make("div", "bb-look-reading", beside);
  const table = make("table", "", beside, { "aria-label": "what the query attends to" });
  const live = make("div", "bb-live", root, { role: "status", "aria-live": "polite" });
  return { root, fault, head, heads, map, note, reading, table, live };
}

const percent = (code) => `${((100 * code) / 65535).toFixed(1)}\u00a0%`; // on one line

// Words as they are told in a sentence: one that comes again has its place.
const quoted = (names) =>
  names.map((name, place) =>
    names.indexOf(name) === names.lastIndexOf(name) ? `“${name}”` : `“${name}” (${place})`);

// The keys that a query attends to, most first, with bars; a chosen key on its own.
function writeRow({ view, frame, shares, hidden, query, key }) {
  if (!frame.keys) return;
  const [tokens, keys] = [quoted(frame.tokens), quoted(frame.keys)];
  const from = query * keys.length;
  const line = shares.subarray(from, from + keys.length);
  const off = hidden.subarray(from, from + keys.length);
  const order = [...keys.keys()].sort((a, b) => line[b] - line[a] || a - b);
  const seen = order.filter((place) => !off[place]);
  view.reading.textContent =
    key === null
      ? `${tokens[query]} attends to ${seen.slice(0, 3).map((k) => `${keys[k]} ${percent(line[k])}`).join(", ")}`
      : `${tokens[query]} attends to ${keys[key]}: ${off[key] ? "hidden, " : ""}${percent(line[key])}`;
  view.table.replaceChildren();
  const top = make("tr", "", make("thead", "", view.table));
  for (const name of ["key", "share"]) make("th", "", top, { scope: "col" }).textContent = name;
  const body = make("tbody", "", view.table);
  const most = Math.max(...line, 1);
  for (const place of seen.slice(0, TOP)) {
    const row = make("tr", place === key ? "bb-chosen" : "", body);
    make("th", "", row, { scope: "row" }).textContent = keys[place];
    const cell = make("td", "", row);
    cell.textContent = percent(line[place]);
    cell.style.setProperty("--bb-share", `${(100 * line[place]) / most}%`);
  }
  const [left, out] = [seen.length - TOP, keys.length - seen.length];
  const rest = [left > 0 ? `${left} more` : "", out ? `${out} hidden` : ""].filter(Boolean);
  if (!rest.length) return;
  const row = make("tr", "", body);
  make("td", "bb-look-rest", row, { colspan: 2 }).textContent = `… ${rest.join(", ")}`;
}

// ── heads ───────────────────────────────────────────────────────────────────

function makeThumbs({ model, view, frame }) {
  const count = model.get("thumbs").byteLength ? frame.heads : 0;
  const buttons = count ? count + 1 : 0;
  if (view.heads.childElementCount !== buttons) {
    view.heads.replaceChildren();
    for (let head = MEAN; head < buttons - 1; head++) {
      const text = head === MEAN ? "mean" : `head ${head}`;
      const button = make("button", "", view.heads, { type: "button", "data-head": head });
      make("canvas", "", button, { "aria-hidden": "true" });
      make("span", "", button).textContent = text;
      button.addEventListener("click", () => model.send({ head }));
    }
  }
  for (const button of view.heads.children) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.head) === frame.head));
  }
}

function drawThumbs({ model, view, frame }) {
  const data = model.get("thumbs");
  const [rows, columns] = frame.thumb; // large maps are shown in blocks
  view.heads.querySelectorAll("canvas").forEach((canvas, place) => {
    const side = Math.max(1, Math.floor(56 / Math.max(rows, columns)));
    canvas.style.width = `${columns * side}px`;
    const pen = penOf(canvas, columns * side, rows * side);
    pen.fillStyle = pen.tone("blue");
    for (let i = 0; i < rows * columns; i++) {
      pen.globalAlpha = data.getUint8(place * rows * columns + i) / 255;
      pen.fillRect((i % columns) * side, Math.floor(i / columns) * side, side, side);
    }
  });
}

// ── pointer and keys ────────────────────────────────────────────────────────

function listen(state) {
  const events = new AbortController();
  const { map } = state.view;
  const on = (name, act) => map.addEventListener(name, act, { signal: events.signal });
  on("pointermove", (event) => {
    const { left, top, side } = state.plot || {};
    if (!side) return;
    const query = Math.floor((event.offsetY - top) / side);
    const key = Math.floor((event.offsetX - left) / side);
    const { tokens, keys } = state.frame;
    if (query < 0 || query >= tokens.length || key >= keys.length) return;
    state.go(query, key < 0 ? null : key, false); // over its name: the whole row
  });
  on("keydown", (event) => walk(state, event));
  return events;
}

// Up and down choose a row, left and right a cell of it; Escape goes back to the row.
function walk(state, event) {
  if (event.altKey || event.metaKey || event.ctrlKey) return;
  const { tokens, keys } = state.frame;
  const { query, key } = state;
  const to = {
    ArrowDown: [query + 1, key],
    ArrowUp: [query - 1, key],
    ArrowRight: [query, key === null ? 0 : key + 1],
    ArrowLeft: [query, key === null || key === 0 ? null : key - 1],
    Home: [0, key],
    End: [tokens.length - 1, key],
    Escape: [query, null],
  }[event.key];
  if (!to) return;
  event.preventDefault();
  event.stopPropagation();
  state.go(inside(to[0], tokens.length), to[1] === null ? null : inside(to[1], keys.length), true);
}

// ── the map ─────────────────────────────────────────────────────────────────

const cut = (name) => (name.length <= 14 ? name : `${name.slice(0, 13)}…`);

// Room for the names first; what is left decides how large a cell is.
function layout({ view, frame }, pen) {
  pen.font = `12px ${getComputedStyle(view.root).fontFamily}`;
  const widest = (names) => Math.max(...names.map((name) => pen.measureText(cut(name)).width));
  const left = Math.min(120, widest(frame.tokens) + 12);
  const top = 0.87 * widest(frame.keys) + 14;
  const last = frame.keys.slice(-3); // their slanted names reach beyond the cells
  const slant = Math.max(...last.map((name) => 0.5 * pen.measureText(cut(name)).width)) + 6;
  const whole = view.root.clientWidth || 720; // the list of a row stands beside it
  const room = Math.min(640, whole > 640 ? whole - 300 : whole) - left - slant;
  const side = Math.min(40, room / frame.keys.length, Math.max(5, TALLEST / frame.tokens.length));
  return { left, top, slant, side: Math.max(3, side) };
}

function drawMap(state) {
  const { view, frame, shares, hidden } = state;
  const canvas = view.map;
  const plot = layout(state, canvas.getContext("2d"));
  state.plot = plot;
  const { left, top, slant, side } = plot;
  const [rows, columns] = [frame.tokens.length, frame.keys.length];
  const [width, height] = [left + columns * side + slant, top + rows * side + 3];
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = penOf(canvas, width, height);
  const { tone } = pen;
  pen.font = `12px ${pen.face}`;
  drawNames(pen, state, tone);
  pen.save();
  pen.translate(left, top);
  const most = Math.max(...shares, 1);
  const written = side >= 26;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let i = 0; i < rows * columns; i++) {
    const [x, y] = [Math.round((i % columns) * side), Math.round(Math.floor(i / columns) * side)];
    const [right, bottom] = [Math.round(((i % columns) + 1) * side), Math.round((Math.floor(i / columns) + 1) * side)];
    pen.globalAlpha = (written ? 0.6 : 0.9) * (shares[i] / most);
    pen.fillStyle = tone("blue");
    pen.fillRect(x, y, right - x, bottom - y);
    pen.globalAlpha = 1;
    if (hidden[i]) drawCross(pen, x, y, side, tone("quiet"));
    else if (written) {
      pen.fillStyle = tone("ink");
      pen.fillText(String(Math.round((100 * shares[i]) / 65535)), (x + right) / 2, (y + bottom) / 2);
    }
  }
  pen.strokeStyle = tone("quiet");
  pen.lineWidth = 1;
  pen.strokeRect(0.5, 0.5, Math.round(columns * side) - 1, Math.round(rows * side) - 1);
  drawChoice(pen, state, side, columns, tone);
  pen.restore();
}

function drawNames(pen, { frame, query, key, plot }, tone) {
  const { left, top, side } = plot;
  const every = Math.ceil(13 / side);
  const wide = Math.ceil(16 / side); // slanted names need more room
  pen.fillStyle = tone("ink");
  pen.textBaseline = "middle";
  const face = pen.font.replace(/^600 /, "");
  const weigh = (chosen) => (pen.font = chosen ? `600 ${face}` : face);
  pen.textAlign = "right";
  frame.tokens.forEach((name, at) => {
    if (at % every && at !== query) return;
    weigh(at === query);
    pen.fillText(cut(name), left - 7, top + (at + 0.5) * side, left - 8);
  });
  pen.textAlign = "left";
  frame.keys.forEach((name, at) => {
    if (at % wide && at !== key) return;
    weigh(at === key);
    pen.save();
    pen.translate(left + (at + 0.5) * side + 2, top - 6);
    pen.rotate(-Math.PI / 3);
    pen.fillText(cut(name), 0, 0);
    pen.restore();
  });
  weigh(false);
}

function drawCross(pen, x, y, side, tone) {
  const arm = side * 0.22;
  const [midX, midY] = [x + side / 2, y + side / 2];
  pen.strokeStyle = tone;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(midX - arm, midY - arm);
  pen.lineTo(midX + arm, midY + arm);
  pen.moveTo(midX + arm, midY - arm);
  pen.lineTo(midX - arm, midY + arm);
  pen.stroke();
}

function drawChoice(pen, { query, key }, side, columns, tone) {
  const frame = (x, wide, width) => {
    for (const [name, more] of [["paper", 2], ["ink", 0]]) {
      pen.strokeStyle = tone(name);
      pen.lineWidth = width + more;
      pen.strokeRect(x, query * side, wide, side);
    }
  };
  frame(0, columns * side, 1.5);
  if (key !== null) frame(key * side, side, 2.5);
}
