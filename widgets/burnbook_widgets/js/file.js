// A file of weights: a tree of its tensors, and the graph of an ONNX file.
//
// Of the tree Python sends a window of rows, so that a file of hundreds of thousands of
// tensors is as quick as a small one; scrolling asks for others: {do: "rows", first}.
// Clicks and keys go back as {do: "choose", "toggle", "fold" or "unfold", at, version}
// with the number of a row, {do: "node", node}, {do: "fold nodes" or "unfold nodes",
// group}. Messages are used, as they pass while a cell awaits.

const ROW = 24; // pixels
const [LEAST, ROWS] = [4, 16]; // rows that are in sight
const TALLEST = 8_000_000; // of what a browser scrolls through without losing its place
const FILE_COLUMNS = ["tensor", "shape", "type", "size"];
let fileViews = 0;

function render({ model, el }) {
  // Keys that a focused row knows are not for the notebook around it.
  const root = make("div", "bb-view bb-file", el, { "data-lm-suppress-shortcuts": "true" });
  const heading = make("div", "bb-file-head", root);
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const view = { model, root, zoom: 1, size: [1, 1], boxes: [], lines: [], at: 0, id: `bb-file-${++fileViews}` };
  makeTree(view, make("div", "bb-file-tensors", root));
  makeGraph(view, make("div", "bb-file-graph", root));
  const keys = make("div", "bb-file-keys", root);
  const live = make("div", "bb-live", root, { role: "status", "aria-live": "polite" });

  const showHead = () => {
    const { title = "", summary = "", facts = [], showing } = model.get("head");
    heading.replaceChildren();
    make("b", "", make("bdi", "", heading)).textContent = title;
    make("span", "", heading).textContent = ` ${summary}`;
    drawPairs(make("div", "bb-file-about", heading), facts, "span");
    root.classList.toggle("bb-file-shows-graph", showing === "graph");
    keys.textContent =
      showing === "graph"
        ? "Arrow keys ↓ and ↑ walk from node to node; Enter chooses one and opens a group; + − 0 change the size. " +
          "Drag the picture to move it."
        : "Arrow keys walk, unfold (→) and fold (←); Enter reads the tensor and shows its statistics.";
  };
  const showScene = () => {
    const held = view.floor.contains(document.activeElement);
    drawFileScene(view);
    drawFileBar(view);
    markNode(view);
    if (held) view.boxes[Math.max(0, model.get("chosen"))]?.group.focus({ preventScroll: true });
  };
  const showPlace = () => {
    const place = model.get("place");
    if (place >= 0 && place !== view.place) goTo(view, place);
    view.place = place;
    drawRows(view);
  };
  const unfollow = follow(model, {
    "change:head": showHead,
    "change:window": () => drawRows(view),
    "change:place": showPlace,
    "change:tensor": () => drawTensor(view),
    "change:scene": showScene,
    "change:chosen": () => markNode(view),
    "change:node": () => drawNode(view),
    "change:source": () => drawSource(view),
    "change:fault": () => (fault.textContent = model.get("fault")),
    "change:said": () => (live.textContent = model.get("said")),
  });
  showHead();
  showScene();
  drawNode(view);
  drawSource(view);
  drawTensor(view);
  showPlace();
  fault.textContent = model.get("fault");
  // A view is made before it is on the page: then there is nothing yet to measure.
  const sizes = new ResizeObserver(() => {
    drawRows(view);
    if (!view.listSeen && view.list.clientHeight) {
      view.listSeen = true;
      if (view.place >= 0) goTo(view, view.place);
    }
    if (!view.seenOnce && view.floor.clientHeight) {
      view.seenOnce = true;
      showScene();
      fitFirst(view);
      drawSource(view);
      model.send({ do: "shapes" });
    }
  });
  sizes.observe(view.list);
  sizes.observe(view.floor);
  return () => {
    sizes.disconnect();
    unfollow();
    el.replaceChildren();
  };
}

export default { render };

function drawPairs(list, facts, tag = "div") {
  list.replaceChildren();
  for (const [name, text] of facts) {
    const pair = make(tag, "bb-file-pair", list);
    make("span", "bb-file-fact", pair).textContent = `${name} `;
    make("bdi", "", pair).textContent = text;
  }
}

// ── the tree ────────────────────────────────────────────────────────────────

function makeTree(view, pane) {
  const room = make("div", "bb-file-room", pane);
  const table = make("div", "bb-file-table", room);
  const names = make("div", "bb-file-row bb-file-names", table, { "aria-hidden": "true" });
  for (const name of FILE_COLUMNS) make("span", "", names).textContent = name;
  const list = make("div", "bb-file-list", table, { role: "tree", tabindex: "0", "aria-label": "tensors of the file" });
  const rows = make("div", "bb-file-rows", list, { role: "presentation" });
  view.tensor = make("div", "bb-file-tensor", room, { role: "group", "aria-label": "the selected tensor" });
  Object.assign(view, { list, rows, names, most: 0 });
  list.addEventListener("scroll", () => drawRows(view));
  list.addEventListener("keydown", (event) => pressRow(view, event));
  // Only marked, as a row that is drawn anew between press and release loses its click.
  list.addEventListener("focus", () => markActive(view));
  list.addEventListener("blur", () => markActive(view));
  list.addEventListener("click", (event) => {
    const row = event.target.closest(".bb-file-row");
    if (!row) return;
    view.at = Number(row.dataset.at);
    send(view, "choose");
    drawRows(view);
  });
}

// How many pixels a row takes of the way that one scrolls: fewer in very long lists.
function pace(total) {
  return Math.min(ROW, TALLEST / Math.max(total, 1));
}

function firstSeen({ list }, total) {
  const most = list.scrollHeight - list.clientHeight;
  if (total * ROW <= TALLEST) return list.scrollTop / ROW;
  return most > 0 ? (list.scrollTop / most) * (total - list.clientHeight / ROW) : 0;
}

function goTo(view, at) {
  const { list, model } = view;
  const { total = 0 } = model.get("window");
  const shown = Math.max(1, Math.floor(list.clientHeight / ROW));
  view.at = inside(at, Math.max(total, 1));
  const first = firstSeen(view, total);
  let wanted = null;
  if (view.at < first) wanted = view.at;
  if (view.at + 1 > first + shown) wanted = view.at + 1 - shown;
  if (wanted !== null) {
    // The list is as high as it will be only once its rows are drawn.
    view.rows.style.height = `${total * pace(total)}px`;
    const most = list.scrollHeight - list.clientHeight;
    list.scrollTop = total * ROW <= TALLEST ? wanted * ROW : (wanted / Math.max(1, total - shown)) * most;
  }
  drawRows(view);
}

function drawRows(view) {
  const { model, list, rows } = view;
  const { total = 0, first = 0, rows: lines = [], version = 0 } = model.get("window");
  rows.style.height = `${total * pace(total)}px`;
  // As high as its rows, and never lower than it was: what stands below would jump.
  view.most = Math.max(view.most, total);
  list.style.height = `${ROW * Math.min(Math.max(view.most, LEAST), ROWS)}px`;
  // The names of the columns leave as much room for a scroll bar as the list does.
  view.names.style.paddingRight = `${8 + list.offsetWidth - list.clientWidth - 1}px`;
  view.at = inside(view.at, Math.max(total, 1));
  const shown = Math.ceil((list.clientHeight || 10 * ROW) / ROW) + 2;
  const seen = Math.max(0, Math.floor(firstSeen(view, total)));
  const last = Math.min(total, seen + shown);
  ask(view, seen, last, first, lines.length, version);
  const shift = total * ROW <= TALLEST ? 0 : list.scrollTop - seen * ROW;
  rows.replaceChildren();
  const chosen = model.get("place");
  for (let at = seen; at < last; at++) {
    const line = lines[at - first];
    drawRow(view, at, line, at === chosen).style.top = `${at * ROW + shift}px`;
  }
  if (!total) make("div", "bb-file-none", rows, { role: "treeitem" }, model.get("head").empty ? "the file holds no tensors" : "nothing is found");
  markActive(view);
}

// The row that keys act on, while the list has the focus.
function markActive({ list, rows, at, id }) {
  const focused = document.activeElement === list;
  let active = null;
  for (const row of rows.children) {
    const isActive = row.dataset.at === String(at);
    if (isActive) active = row;
    row.classList.toggle("bb-file-active", isActive && focused);
  }
  if (active) list.setAttribute("aria-activedescendant", `${id}-${at}`);
  else list.removeAttribute("aria-activedescendant");
}

// Ask once for rows that are in sight and not there.
function ask(view, seen, last, first, count, version) {
  const there = seen >= first && last <= first + count;
  const wanted = Math.max(0, seen - 30);
  const key = `${version} ${wanted}`;
  if (there || view.asked === key) return;
  view.asked = key;
  view.model.send({ do: "rows", first: wanted });
}

function drawRow(view, at, line, chosen) {
  const row = make("div", "bb-file-row", view.rows, {
    role: "treeitem",
    id: `${view.id}-${at}`,
    "data-at": at,
    "aria-selected": String(chosen),
  });
  if (!line) {
    row.setAttribute("aria-label", "not there yet");
    row.textContent = "…";
    return row;
  }
  row.setAttribute("aria-level", line.level);
  row.setAttribute("aria-posinset", line.place);
  row.setAttribute("aria-setsize", line.of);
  row.setAttribute("aria-label", [line.label, line.shape, line.dtype, line.size].filter(Boolean).join(", "));
  if ("open" in line) row.setAttribute("aria-expanded", String(line.open));
  const name = make("span", "bb-file-name", row, { title: line.label });
  name.style.paddingLeft = `${16 * Math.min(line.level - 1, 20)}px`;
  make("span", "bb-file-fold", name).textContent = "open" in line ? (line.open ? "▾" : "▸") : "";
  make("bdi", "", name).textContent = line.label;
  const soft = "open" in line || line.other ? "bb-file-soft" : "";
  make("bdi", soft, make("span", "", row, { title: line.shape || "" })).textContent = line.shape || "";
  make("span", "bb-file-soft", row).textContent = line.dtype || "";
  make("span", "bb-file-number", row).textContent = line.size || "";
  return row;
}

function send(view, what) {
  const { version } = view.model.get("window");
  view.model.send({ do: what, at: view.at, version });
}

function pressRow(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { total = 0, first = 0, rows: lines = [] } = view.model.get("window");
  const line = lines[view.at - first] ?? {};
  const page = Math.max(1, Math.floor(view.list.clientHeight / ROW) - 1);
  const parent = () => line.parent >= 0 && goTo(view, line.parent);
  const act = {
    ArrowDown: () => goTo(view, view.at + 1),
    ArrowUp: () => goTo(view, view.at - 1),
    PageDown: () => goTo(view, view.at + page),
    PageUp: () => goTo(view, view.at - page),
    Home: () => goTo(view, 0),
    End: () => goTo(view, total - 1),
    ArrowRight: () => (line.open === false ? send(view, "unfold") : line.open && goTo(view, view.at + 1)),
    ArrowLeft: () => (line.open ? send(view, "fold") : parent()),
    Enter: () => send(view, "toggle"),
    " ": () => send(view, "toggle"),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}

// ── the selected tensor ─────────────────────────────────────────────────────

function drawTensor(view) {
  const { facts = [], trouble = "", bars, ends, every } = view.model.get("tensor");
  view.tensor.replaceChildren();
  if (!facts.length) {
    const { empty } = view.model.get("head");
    make("div", "bb-file-soft", view.tensor).textContent = empty ? "" : "Select a tensor: only then is it read.";
    return;
  }
  drawPairs(make("div", "bb-file-facts", view.tensor), facts);
  if (trouble) make("div", "bb-file-trouble", view.tensor).textContent = `✕ ${trouble}`;
  if (bars) drawHistogram(view.tensor, bars, ends, every);
}

function drawHistogram(parent, bars, [low, high], every) {
  const most = Math.max(...bars);
  const highest = most.toLocaleString("en");
  const svg = put("svg", "bb-file-bars", parent, {
    viewBox: "0 0 260 112",
    role: "img",
    "aria-label": `histogram from ${low} to ${high}; the highest bar has ${highest}`,
  });
  const wide = 260 / bars.length;
  bars.forEach((count, i) => {
    const height = count ? Math.max(1, (78 * count) / most) : 0;
    put("rect", "bb-file-bar", svg, { x: i * wide, y: 94 - height, width: Math.max(0.5, wide - 1), height });
  });
  put("path", "bb-file-axis", svg, { d: "M0 94.5h260" });
  put("text", "", svg, { x: 0, y: 108 }, low);
  put("text", "", svg, { x: 260, y: 108, "text-anchor": "end" }, high);
  put("text", "", svg, { x: 260, y: 10, "text-anchor": "end" }, `highest bar ${highest}`);
  if (every > 1) {
    make("div", "bb-file-soft", parent).textContent = `the histogram looks at one of ${every} elements`;
  }
}

// ── the graph ───────────────────────────────────────────────────────────────

function makeGraph(view, pane) {
  view.bar = make("div", "bb-graph-bar", pane, { role: "group", "aria-label": "groups and size" });
  const room = make("div", "bb-graph-room", pane);
  view.floor = make("div", "bb-graph-floor", room);
  const beside = make("div", "bb-graph-beside", room);
  view.node = make("div", "bb-file-node", beside, { role: "group", "aria-label": "the chosen node" });
  view.source = make("div", "bb-file-source", pane);
  view.floor.addEventListener("keydown", (event) => pressNode(view, event));
  view.floor.addEventListener("click", (event) => {
    const group = event.target.closest(".bb-graph-box");
    if (group && !view.dragged) chooseNode(view, Number(group.dataset.part));
  });
  view.floor.addEventListener("wheel", (event) => wheel(view, event), { passive: false });
  view.floor.addEventListener("pointerdown", (event) => drag(view, event));
}

function drawFileScene(view) {
  const scene = view.model.get("scene");
  if (!scene.parts) return;
  const { scrollTop, scrollLeft } = view.floor;
  startScene(view, scene, "the graph, inputs at the top");
  view.lines.forEach(({ group }) => group.classList.add("bb-graph-there"));
  view.boxes = scene.parts.map(([kind, label, second, third, fourth, x, y, key], i) => {
    const texts = [label, second, third, fourth];
    const lines = texts.map((text, at) => [at ? "bb-graph-soft" : "bb-graph-label", text]);
    const { group } = putBox(view.svg, kind, [x, y], i, scene.box, lines);
    const said = texts.filter(Boolean).join(", ");
    group.setAttribute("aria-label", kind === "group" ? `group ${said}, closed` : said);
    put("title", "", group, {}, texts.filter(Boolean).join("\n"));
    return { group, key, folded: kind === "group" };
  });
  [view.floor.scrollTop, view.floor.scrollLeft] = [scrollTop, scrollLeft];
}

function drawFileBar(view) {
  const { open = [], groups = 0 } = view.model.get("scene");
  view.bar.replaceChildren();
  drawZoom(view);
  if (groups) drawGroups(view, open, (what, group = "") => () => view.model.send({ do: `${what} nodes`, group }));
}

// A picture that is wider than its frame begins with the inputs in the middle.
function fitFirst({ floor, boxes }) {
  const first = boxes[0]?.group.getBoundingClientRect();
  if (!first || floor.scrollWidth <= floor.clientWidth) return;
  const frame = floor.getBoundingClientRect();
  floor.scrollLeft += first.left + first.width / 2 - frame.left - frame.width / 2;
}

function markNode(view) {
  const chosen = view.model.get("chosen");
  view.boxes.forEach(({ group }, i) => {
    group.setAttribute("aria-pressed", String(i === chosen));
    group.setAttribute("tabindex", i === Math.max(chosen, 0) ? "0" : "-1");
  });
  view.lines.forEach(({ group, ends }) => group.classList.toggle("bb-file-near", ends.includes(chosen)));
  if (view.boxes[chosen]) reveal(view.floor, view.boxes[chosen].group);
}

function drawNode(view) {
  const facts = view.model.get("node");
  view.node.replaceChildren();
  if (!facts.length) {
    make("div", "bb-file-soft", view.node).textContent = "Choose a node: its line of source is shown below.";
    return;
  }
  drawPairs(make("div", "bb-file-facts", view.node), facts);
}

function chooseNode(view, at) {
  const box = view.boxes[at];
  if (!box) return;
  walkTo(view, at);
  if (box.folded) view.model.send({ do: "unfold nodes", group: box.key });
  else view.model.send({ do: "node", node: box.key });
}

function walkTo(view, at) {
  const box = view.boxes[inside(at, view.boxes.length)];
  if (!box) return;
  view.boxes.forEach(({ group }) => group.setAttribute("tabindex", group === box.group ? "0" : "-1"));
  box.group.focus({ preventScroll: true });
  reveal(view.floor, box.group);
}

function pressNode(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const held = event.target.closest(".bb-graph-box");
  const at = held ? Number(held.dataset.part) : Math.max(0, view.model.get("chosen"));
  const act = {
    ArrowDown: () => walkTo(view, at + 1),
    ArrowRight: () => walkTo(view, at + 1),
    ArrowUp: () => walkTo(view, at - 1),
    ArrowLeft: () => walkTo(view, at - 1),
    Home: () => walkTo(view, 0),
    End: () => walkTo(view, view.boxes.length - 1),
    Enter: () => chooseNode(view, at),
    " ": () => chooseNode(view, at),
    "+": () => step(view, 1),
    "-": () => step(view, -1),
    0: () => fitAll(view),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}

// ── the source ──────────────────────────────────────────────────────────────

function drawSource(view) {
  const { trouble = "", lines = [], first = 1, from = 0, to = 0, total = 0 } = view.model.get("source");
  view.source.replaceChildren();
  if (trouble) make("pre", "bb-file-trouble", view.source).textContent = trouble;
  if (!lines.length) return;
  const meant = from ? (from === to ? `, line ${from}` : `, lines ${from} to ${to}`) : "";
  make("div", "bb-file-caption", view.source).textContent =
    (from ? `The source that this becomes${meant}` : "The source that the file becomes; of this nothing stands in it") +
    (lines.length < total ? ` (of ${total.toLocaleString("en")})` : "");
  const text = make("div", "bb-file-code", view.source, {
    tabindex: "0",
    role: "group",
    "aria-label": `Python source${meant}`,
  });
  let shown = null;
  lines.forEach((line, i) => {
    const at = first + i;
    const row = make("div", "bb-file-line", text);
    make("span", "bb-file-at", row, { "aria-hidden": "true" }).textContent = at;
    make("code", "", row).textContent = line || " ";
    if (at < from || at > to) return;
    row.classList.add("bb-file-meant");
    row.setAttribute("aria-current", "true");
    shown ??= row;
  });
  if (shown) text.scrollTop = shown.offsetTop - text.clientHeight / 3;
}
