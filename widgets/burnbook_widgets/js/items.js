// The view of the dataset browser: cards, bars, the matrix.
//
// Python sends words and places in a block of bytes; this turns them into a page and
// sends back what was clicked ({do: "select", item: 17}). It never decides anything.

const SIDE = 84; // of a picture on a page, in pixels of the screen
const LARGE = 200; // of a picture looked at closely

function render({ model, el }) {
  const view = build(el);
  const tell = (message) => model.send(message);
  const events = new AbortController();
  // Addresses of pictures that the browser decodes, given back when they are replaced.
  const addresses = { page: [], detail: [] };
  let due = false;

  function startOf(part, data) {
    for (const address of addresses[part]) URL.revokeObjectURL(address);
    addresses[part] = [];
    return { data: bytesOf(model.get(data)), addresses: addresses[part] };
  }

  function pageSoon() {
    if (due) return; // one drawing for one message, however many traits it changes
    due = true;
    queueMicrotask(() => {
      due = false;
      showPage();
    });
  }

  function showPage() {
    const held = focused(view.main);
    const head = document.activeElement?.dataset?.sort;
    const page = model.get("page");
    const place = startOf("page", "data");
    view.main.replaceChildren();
    if (page.view === "confusion") showMatrix(view.main, model.get("grid"), tell);
    else if (page.view === "batch") showBatch(view.main, page, place);
    else showItems(view.main, page, place, tell);
    markSelected();
    if (held !== null) focusCard(view.main, held);
    else if (head) view.main.querySelector(`[data-sort="${CSS.escape(head)}"]`)?.focus();
  }

  function showDetail() {
    const held = view.detail.contains(document.activeElement);
    const place = startOf("detail", "large");
    view.detail.replaceChildren();
    const detail = model.get("detail");
    if (detail && "i" in detail) showClosely(view.detail, detail, place, tell);
    else if (held) view.main.querySelector('[tabindex="0"]')?.focus();
  }

  function showStatus() {
    const status = model.get("status");
    const notes = [...(status.notes || [])];
    if (status.page && status.page[1] > 1) notes.unshift(`page ${status.page[0]} of ${status.page[1]}`);
    view.headline.textContent = status.headline || "";
    view.notes.textContent = notes.join(" · ");
    view.fault.textContent = status.fault || "";
    view.fault.hidden = !status.fault;
    const said = status.fault || status.said;
    if (said && said !== view.live.textContent) view.live.textContent = said;
    markSelected();
  }

  function markSelected() {
    const { selected, code } = model.get("status");
    for (const card of view.main.querySelectorAll(".bbi-card")) {
      card.setAttribute("aria-pressed", Number(card.dataset.item) === selected);
    }
    for (const one of view.classes.querySelectorAll(".bbi-class")) {
      one.setAttribute("aria-pressed", Number(one.dataset.code) === code);
    }
  }

  const showBalance = () => {
    showClasses(view.classes, model.get("balance"), tell);
    markSelected();
  };
  const listeners = {
    "change:page": pageSoon,
    "change:grid": pageSoon,
    "change:data": pageSoon,
    "change:detail": showDetail,
    "change:balance": showBalance,
    "change:status": showStatus,
  };
  listeners["msg:custom"] = (message, buffers) => play(message, buffers, view, addresses.detail);
  const unfollow = follow(model, listeners);
  view.root.addEventListener("keydown", (event) => move(event, view, tell), { signal: events.signal });
  showBalance();
  showPage();
  showDetail();
  showStatus();

  return () => {
    unfollow();
    startOf("page", "data");
    startOf("detail", "large");
    events.abort();
    el.replaceChildren();
  };
}

export default { render };

// ── the page ────────────────────────────────────────────────────────────────

function build(el) {
  const root = make("div", "bb-view bbi", el);
  const head = make("div", "bbi-head", root);
  const headline = make("b", "", head);
  const notes = make("span", "", head);
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const body = make("div", "bbi-body", root);
  const classes = make("div", "bbi-classes", body);
  const main = make("div", "bbi-main", body);
  const detail = make("div", "bbi-detail", body, { role: "region", "aria-label": "the selected item" });
  const live = make("div", "bb-live", root, { "aria-live": "polite", role: "status" });
  return { root, headline, notes, fault, classes, main, detail, live };
}

// ── keys: arrows walk over cards or cells, Enter presses them, Escape closes ────

function focused(main) {
  const card = document.activeElement;
  return main.contains(card) && card.dataset.place ? Number(card.dataset.place) : null;
}

function focusCard(main, place) {
  const cards = [...main.querySelectorAll("[data-place]")];
  cards[Math.min(place, cards.length - 1)]?.focus();
}

function move(event, view, tell) {
  if (event.key === "Escape" && view.detail.childElementCount) {
    tell({ do: "unselect" });
  } else if (event.key === "PageDown" || event.key === "PageUp") {
    tell({ do: "turn", by: event.key === "PageDown" ? 1 : -1 });
  } else {
    if (event.key === "Enter" || event.key === " ") event.stopPropagation(); // presses the button
    const row = event.target.closest("[data-row]");
    if (!row) return;
    const cards = [...view.root.querySelectorAll(`[data-row="${row.dataset.row}"]`)];
    const at = cards.indexOf(row);
    const across = Number(row.dataset.across) || columnsOf(cards);
    const to = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      ArrowDown: at + across,
      ArrowUp: at - across,
      Home: 0,
      End: cards.length - 1,
    }[event.key];
    if (to === undefined) return;
    if (cards[to]) {
      for (const card of cards) card.tabIndex = -1;
      cards[to].tabIndex = 0;
      cards[to].focus();
    }
  }
  event.preventDefault();
  event.stopPropagation(); // the notebook moves between cells with the same keys
}

// How many cards stand side by side, which the width of the page decides.
function columnsOf(cards) {
  const below = cards.findIndex((card) => card.offsetTop > cards[0].offsetTop + 4);
  return below < 1 ? 1 : below;
}

// ── classes ─────────────────────────────────────────────────────────────────

function showClasses(parent, balance, tell) {
  const held = parent.contains(document.activeElement) ? document.activeElement.dataset.code : null;
  parent.replaceChildren();
  if (!balance.length) return;
  make("h4", "", parent, {}, "Items of each class");
  const list = make("div", "bbi-list", parent, { role: "group", "aria-label": "items of each class" });
  const letters = Math.max(2, ...balance.map(([name]) => name.length));
  list.style.setProperty("--names", `${Math.min(96, 8 + 7.2 * letters)}px`); // bars begin together
  const longest = Math.max(1, ...balance.map(([, , total]) => total));
  balance.forEach(([name, some, total], code) => {
    const count = some === total ? total.toLocaleString("en") : `${some.toLocaleString("en")} of ${total.toLocaleString("en")}`;
    const button = make("button", "bbi-class", list, {
      type: "button",
      title: `Show class ${name}: ${count} items`,
      "aria-label": `class ${name}, ${count} items`,
      "data-code": code,
      "data-row": "classes",
      "data-across": 1,
      tabindex: code ? -1 : 0,
    });
    make("span", "bbi-name", button, {}, name);
    const track = make("span", "", button);
    const bar = make("span", "bbi-bar", track, { style: `display:block;width:${(100 * total) / longest}%` });
    make("i", "", bar, { style: `width:${total ? (100 * some) / total : 0}%` });
    make("span", "", bar, {}, count);
    button.onclick = () => tell({ do: "class", code });
  });
  if (held !== null) list.querySelector(`[data-code="${held}"]`)?.focus();
}

// ── pictures and curves ─────────────────────────────────────────────────────

function picture(parent, [start, count, width, height, channels], place, side, label) {
  const part = place.data.subarray(start, start + count);
  const scale = side / Math.max(width, height);
  const size = `width:${Math.round(width * scale)}px;height:${Math.round(height * scale)}px`;
  if (channels === 0) {
    const address = URL.createObjectURL(new Blob([part], { type: "image/jpeg" }));
    place.addresses.push(address);
    return make("img", "", parent, { src: address, alt: label, style: size });
  }
  const canvas = make("canvas", "", parent, { width, height, style: size, role: "img", "aria-label": label });
  const pixels = new ImageData(width, height);
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < 3; c++) pixels.data[4 * i + c] = part[channels === 3 ? 3 * i + c : i];
    pixels.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

function wave(parent, [start, columns], place, width, label) {
  const height = 54;
  const values = new Int8Array(place.data.slice(start, start + 2 * columns).buffer);
  const at = (column, side) =>
    `${(2 + (column * (width - 4)) / Math.max(1, columns - 1)).toFixed(1)},` +
    `${(height / 2 - (values[2 * column + side] / 127) * (height / 2 - 2)).toFixed(1)}`;
  const all = [...Array(columns).keys()];
  const points = [...all.map((c) => at(c, 1)), ...all.toReversed().map((c) => at(c, 0))];
  const seen = { role: "img", "aria-label": label };
  const svg = put("svg", "", parent, { width, height, viewBox: `0 0 ${width} ${height}`, ...seen });
  put("path", "", svg, { d: `M2,${height / 2}H${width - 2}`, stroke: "var(--bb-grid)" });
  put("polygon", "bbi-wave", svg, { points: points.join(" ") });
}

// A picture, a curve or a text; before its transforms, too, if they were given.
function showBody(parent, item, place, side) {
  if (item.before) {
    const pair = make("span", "bbi-pair bbi-text", parent);
    showBody(make("span", "", pair), item.before, place, side);
    make("span", "", pair, { "aria-label": "becomes" }, "→");
    showBody(make("span", "", pair), { ...item, before: null }, place, side);
  } else if (item.pic) {
    const art = make("span", "bbi-art", parent);
    picture(art, item.pic, place, side, `picture of item ${item.i}`);
    for (const [x, y, w, h] of item.boxes || []) {
      const where = { left: x, top: y, width: w, height: h };
      const style = Object.entries(where).map(([k, v]) => `${k}:${(100 * v).toFixed(2)}%`);
      make("span", "bbi-box", art, { style: style.join(";") });
    }
    if (item.mask) picture(parent, item.mask, place, side, `mask of item ${item.i}`);
  } else if (item.wave) {
    wave(parent, item.wave, place, side > SIDE ? 260 : 220, `curve of item ${item.i}`);
  } else {
    const text = make("span", "bbi-text", parent);
    if (item.title) make("b", "", text, {}, item.title);
    if (item.text) make("span", "", text, {}, item.text);
  }
}

function describe(item) {
  const parts = [`item ${item.i}`];
  if (item.label) parts.push(`label ${item.label}`);
  if (item.guess !== undefined) parts.push(`predicted ${item.guess}, ${item.wrong ? "wrong" : "right"}`);
  return parts.join(", ");
}

function caption(parent, item) {
  const under = make("span", "bbi-under", parent);
  make("small", "", under, {}, `${item.i}${item.label ? ": " : ""}`);
  if (item.label) make("b", "", under, {}, item.label);
  if (item.guess === undefined) return;
  make("span", "", under, {}, item.wrong ? ` ✗ ${item.guess}` : " ✓");
}

// ── items ───────────────────────────────────────────────────────────────────

function showItems(main, page, place, tell) {
  if (!page.items.length) {
    make("p", "", main, {}, page.empty || "No item matches.");
  } else if (page.kind === "row") {
    showTable(main, page, tell);
  } else {
    const list = make("div", page.kind === "image" ? "bbi-pictures" : "bbi-rows", main);
    page.items.forEach((item, at) => {
      const card = cardOf(list, item, at, tell);
      if (page.kind === "image") {
        showBody(card, item, place, SIDE);
        caption(card, item);
      } else {
        caption(card, item);
        showBody(card, item, place, SIDE);
        if (item.sounds) {
          const line = make("div", "bbi-line", list);
          line.append(card);
          playButton(line, item, tell);
        }
      }
    });
  }
}

function playButton(parent, item, tell) {
  const button = make("button", "bbi-play", parent, { type: "button", "aria-label": `play item ${item.i}`, title: `play item ${item.i}` }, "▶");
  button.onclick = () => tell({ do: "play", item: item.i });
}

function cardOf(parent, item, at, tell) {
  const card = make("button", `bbi-card${item.wrong ? " bbi-wrong" : ""}`, parent, {
    type: "button",
    "aria-label": [describe(item), item.title].filter(Boolean).join(", "),
    "data-item": item.i,
    "data-place": at,
    "data-row": "cards",
    tabindex: at ? -1 : 0,
  });
  card.onclick = () => {
    for (const other of parent.closest(".bbi-main").querySelectorAll(".bbi-card")) other.tabIndex = -1;
    card.tabIndex = 0;
    tell(card.getAttribute("aria-pressed") === "true" ? { do: "unselect" } : { do: "select", item: item.i });
  };
  return card;
}

function showTable(main, { items, statistics = {}, sorted = [], label = "" }, tell) {
  const table = make("table", "", make("div", "bbi-scroll", main));
  const whole = items.find((item) => item.kind !== "fault") || items[0];
  const names = whole.fields.map(([key]) => key);
  const labeled = items.some((item) => item.label);
  const guessed = "guess" in items[0];
  const head = make("tr", "", make("thead", "", table));
  const isNumber = (text) => text !== "" && !Number.isNaN(Number(text));
  const numeric = names.map((_, i) => items.every((item) => item.kind === "fault" || isNumber(item.fields[i]?.[1] ?? "")));
  const columns = [["item", ""], ...(labeled ? [["label", label]] : []), ...(guessed ? [["predicted", ""]] : []), ...names.map((name) => [name, name])];
  columns.forEach(([title, by], i) => {
    const right = numeric[i - (columns.length - names.length)];
    const cell = make("th", right ? "bbi-number" : "", head, { scope: "col" });
    if (!by || !(by in statistics)) {
      cell.textContent = title;
      return;
    }
    const way = sorted[0] === by ? (sorted[1] ? "descending" : "ascending") : "none";
    cell.setAttribute("aria-sort", way);
    const button = make("button", "bbi-sort", cell, { type: "button", "data-sort": by, title: `sort by ${title}` }, title);
    make("span", "", button, { "aria-hidden": "true" }, { ascending: " ▲", descending: " ▼", none: "" }[way]);
    button.onclick = () => tell({ do: "sort", by });
  });
  showStatistics(table, columns, names, numeric, statistics);
  const body = make("tbody", "", table);
  items.forEach((item, at) => {
    const row = make("tr", "", body);
    const card = cardOf(make("td", "", row), item, at, tell);
    card.textContent = item.i;
    if (labeled) make("td", "", row, {}, item.label);
    if (guessed) make("td", "", row, {}, `${item.wrong ? "✗" : "✓"} ${item.guess}`);
    const older = Object.fromEntries(item.before?.fields || []);
    item.fields.forEach(([key, value], i) => {
      const changed = key in older && older[key] !== value;
      make("td", numeric[i] ? "bbi-number" : "", row, {}, changed ? `${older[key]} → ${value}` : value);
    });
    if (item.kind === "fault") make("td", "", row, { colspan: Math.max(1, names.length) }, item.text);
  });
}

// Below the table, a line for each thing that is known of all of its columns.
function showStatistics(table, columns, names, numeric, statistics) {
  const kinds = ["lowest", "mean", "highest", "different", "most often", "missing"];
  const known = kinds.filter((kind) => columns.some(([, by]) => statistics[by]?.[kind]));
  if (!known.length) return;
  const foot = make("tfoot", "bbi-statistics", table);
  for (const kind of known) {
    const row = make("tr", "", foot);
    make("th", "", row, { scope: "row" }, kind);
    columns.slice(1).forEach(([, by], i) => {
      const right = numeric[i + 1 - (columns.length - names.length)];
      make("td", right ? "bbi-number" : "", row, {}, statistics[by]?.[kind] ?? "");
    });
  }
}

// ── what was taken for what ─────────────────────────────────────────────────

function showMatrix(main, grid, tell) {
  if (!grid.names) return;
  const { names } = grid;
  if (grid.worst) {
    showWorst(main, grid, tell);
    return;
  }
  make("p", "bbi-axis", main, {}, "Rows: the true class. Columns: the predicted class. Press a number to see its items.");
  const table = make("table", "bbi-matrix", make("div", "bbi-scroll", main));
  const head = make("tr", "", make("thead", "", table));
  make("td", "", head);
  for (const name of names) make("th", "", head, { scope: "col" }, name);
  const body = make("tbody", "", table);
  grid.counts.forEach((row, truth) => {
    const line = make("tr", "", body);
    make("th", "", line, { scope: "row" }, names[truth]);
    const sum = Math.max(1, row.reduce((a, b) => a + b, 0));
    row.forEach((count, predicted) => {
      const hit = truth === predicted;
      // Never so dark that the number on it is hard to read.
      const share = count ? Math.round(8 + 37 * Math.sqrt(count / sum)) : 0;
      const cell = make("button", `bbi-cell${hit ? " bbi-hit" : ""}`, make("td", "", line), {
        type: "button",
        style: `background:color-mix(in srgb, var(--bb-${hit ? "blue" : "orange"}) ${share}%, transparent)`,
        "aria-label": `${count} of class ${names[truth]} predicted as ${names[predicted]}`,
        "data-place": truth * names.length + predicted,
        "data-row": "cells",
        "data-across": names.length,
        tabindex: truth || predicted ? -1 : 0,
      }, count ? String(count) : "·");
      cell.onclick = () => tell({ do: "cell", truth, predicted });
    });
  });
}

function showWorst(main, { names, worst }, tell) {
  make("p", "bbi-axis", main, {}, "The most frequent confusions. Press a number to see its items.");
  const table = make("table", "", main);
  const head = make("tr", "", make("thead", "", table));
  for (const title of ["class", "predicted as", "items"]) make("th", "", head, { scope: "col" }, title);
  const body = make("tbody", "", table);
  worst.forEach(([truth, predicted, count], at) => {
    const line = make("tr", "", body);
    make("td", "", line, {}, names[truth]);
    make("td", "", line, {}, names[predicted]);
    const cell = make("button", "bbi-cell", make("td", "", line), {
      type: "button",
      "aria-label": `${count} of class ${names[truth]} predicted as ${names[predicted]}`,
      "data-place": at,
      "data-row": "cells",
      "data-across": 1,
      tabindex: at ? -1 : 0,
    }, String(count));
    cell.onclick = () => tell({ do: "cell", truth, predicted });
  });
}

// ── one item closely ────────────────────────────────────────────────────────

function showClosely(parent, item, place, tell) {
  const top = make("div", "bbi-top", parent);
  make("h4", "", top, {}, `Item ${item.i}`);
  const close = make("button", "bbi-close", top, { type: "button", "aria-label": "close the item" }, "✕");
  close.onclick = () => tell({ do: "unselect" });
  if (item.kind !== "row") showBody(make("div", "", parent), item, place, item.before ? LARGE / 1.6 : LARGE);
  if (item.sounds) {
    const room = make("div", "bbi-sound", parent);
    const button = make("button", "bbi-close", room, { type: "button" }, "▶ Play");
    button.onclick = () => tell({ do: "play" });
  }
  if (item.guess !== undefined) {
    const verdict = item.wrong ? `✗ predicted ${item.guess}` : `✓ predicted ${item.guess}`;
    make("p", "bbi-verdict", parent, {}, `${verdict}, the label is ${item.label || "unknown"}`);
  }
  for (const [name, chance] of item.top || []) {
    const bad = item.wrong && name === item.guess;
    const row = make("div", `bbi-chance${bad ? " bbi-bad" : ""}`, parent);
    make("span", "bbi-name", row, {}, name === item.label ? `${name} (label)` : name);
    const bar = make("span", "bbi-bar", row);
    make("i", "", bar, { style: `width:${100 * chance}%` });
    make("span", "", row, {}, `${(100 * chance).toFixed(1)} %`);
  }
  const table = make("tbody", "", make("table", "", parent));
  const label = item.label && item.guess === undefined ? [["label", item.label]] : [];
  const older = Object.fromEntries(item.before?.fields || []);
  for (const [key, value] of [...label, ...item.facts, ...item.fields]) {
    const row = make("tr", "", table);
    make("th", "", row, { scope: "row" }, key);
    const changed = key in older && older[key] !== value;
    make("td", "", row, {}, changed ? `${older[key]} → ${value}` : value);
  }
}

// What Python sends to be heard, as a sound with its own controls in the open item.
function play(message, [data], view, addresses) {
  const room = view.detail.querySelector(".bbi-sound");
  if (!message.rate || !room) return;
  const address = URL.createObjectURL(new Blob([waveHead(data.byteLength, message.rate), data], { type: "audio/wav" }));
  addresses.push(address);
  room.replaceChildren();
  const sound = make("audio", "", room, { controls: "", src: address, "aria-label": `sound of item ${message.play}` });
  sound.play().catch(() => {}); // a page may have to be touched before it may sound
}

// The beginning of a WAV file of 16-bit samples, one channel.
function waveHead(bytes, rate) {
  const head = new DataView(new ArrayBuffer(44));
  const write = (at, text) => [...text].forEach((letter, i) => head.setUint8(at + i, letter.charCodeAt(0)));
  write(0, "RIFF");
  head.setUint32(4, 36 + bytes, true);
  write(8, "WAVEfmt ");
  head.setUint32(16, 16, true);
  head.setUint16(20, 1, true);
  head.setUint16(22, 1, true);
  head.setUint32(24, rate, true);
  head.setUint32(28, 2 * rate, true);
  head.setUint16(32, 2, true);
  head.setUint16(34, 16, true);
  write(36, "data");
  head.setUint32(40, bytes, true);
  return head.buffer;
}

// ── a batch ─────────────────────────────────────────────────────────────────

function showBatch(main, page, place) {
  make("p", "bbi-axis", main, {}, `What the batcher makes of the ${page.count === 1 ? "item" : `${page.count} items`} of this page:`);
  for (const part of page.parts) {
    const section = make("section", "bbi-part", main, { "aria-label": `${part.name} of the batch` });
    const title = make("p", "", section);
    make("b", "", title, {}, part.name);
    make("span", "", title, {}, ` ${[part.about, part.range].filter(Boolean).join(" · ")}`);
    if (!part.pics) {
      make("p", "", section, {}, part.values || "");
      continue;
    }
    const row = make("div", "bbi-pictures", section);
    part.pics.forEach((pic, at) => {
      const label = part.wide ? `${part.name}, a row for each item` : `row ${at} of ${part.name}`;
      picture(make("span", "bbi-art", row), pic, place, part.wide ? 320 : 56, label);
    });
    if (part.of > part.pics.length) make("span", "", row, {}, `and ${part.of - part.pics.length} more`);
  }
}
