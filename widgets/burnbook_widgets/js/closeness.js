// The closeness report: a table of layers, a ladder of
// tolerances, and the elements that differ most.
//
// Python sends what is to be seen (`head`, `layers`, `ladder`); this turns it into
// tables. A click sends {do: "choose", name} or {do: "sort", by}, nothing more: Python
// answers with new traits. Messages are used, as they pass while a cell awaits.

const SIGNS = { PASS: "✓", WARN: "!", FAIL: "✗" };
const COLUMNS = [
  ["name", ""],
  ["verdict", "verdict"],
  ["close", "close"],
  ["within", "within"],
  ["largest", "largest"],
  ["", "shape"],
];

function render({ model, el }) {
  // Keys that a focused button knows are not for the notebook around it.
  const root = make("div", "bb-view bb-close", el, { "data-lm-suppress-shortcuts": "true" });
  const heading = make("div", "bb-close-head", root);
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const parts = make("div", "bb-close-parts", root);
  const list = make("div", "bb-close-list", parts);
  const rungs = make("div", "bb-close-ladder", parts);
  const live = make("div", "bb-live", root, { role: "status", "aria-live": "polite" });
  const send = (message) => model.send(message);

  const show = () => {
    const head = model.get("head");
    heading.replaceChildren();
    make("b", "", heading).textContent = head.title || "";
    make("span", "", heading).textContent = ` ${head.summary || ""}`;
    list.hidden = !head.what;
    if (head.what) drawLayers(list, head, model.get("layers"), model.get("ladder").name, send);
    drawLadder(rungs, model.get("ladder"));
  };
  const showFault = () => (fault.textContent = model.get("fault"));
  const say = () => (live.textContent = model.get("said"));
  const listeners = {
    "change:head": show,
    "change:layers": show,
    "change:ladder": show,
    "change:fault": showFault,
    "change:said": say,
  };
  const unfollow = follow(model, listeners);
  show();
  showFault();
  return () => {
    unfollow();
    el.replaceChildren();
  };
}

export default { render };

function badge(parent, verdict) {
  const node = make("span", `bb-verdict bb-${verdict}`, parent);
  make("span", "", node, { "aria-hidden": "true" }).textContent = SIGNS[verdict];
  node.append(` ${verdict}`);
}

// ── the layers ──────────────────────────────────────────────────────────────

function drawLayers(list, head, layers, chosen, send) {
  const held = list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const top = list.scrollTop;
  list.replaceChildren();
  const table = make("table", "", list);
  make("caption", "", table).textContent = caption(head, layers);
  drawHead(make("tr", "", make("thead", "", table)), head, send);
  const body = make("tbody", "", table);
  const reached = layers.some((one) => one.name === chosen) ? chosen : layers[0]?.name;
  for (const one of layers) {
    const row = make("tr", one.name === chosen ? "bb-chosen" : "", body);
    row.addEventListener("click", () => send({ do: "choose", name: one.name }));
    const button = make("button", "bb-name", make("th", "", row, { scope: "row" }), {
      type: "button",
      title: one.name,
      "data-key": `row ${one.name}`,
      "aria-pressed": String(one.name === chosen),
      tabindex: one.name === reached ? 0 : -1,
    });
    button.textContent = one.name;
    badge(make("td", "", row), one.verdict);
    for (const key of one.shape ? ["close", "within", "largest", "shape"] : ["largest"]) {
      make("td", "", row).textContent = one[key];
    }
    if (!one.shape) row.lastChild.colSpan = 4; // why there is nothing to compare
  }
  body.addEventListener("keydown", (event) => walk(body, event));
  list.scrollTop = top;
  if (held) list.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus({ preventScroll: true });
}

function caption(head, layers) {
  if (!layers.length) return "None is shown.";
  const last = head.from + layers.length - 1;
  const shown = head.found > layers.length ? `${head.from} to ${last} of ${head.found}` : `${head.found}`;
  return `${shown} ${head.found < head.total ? `(of ${head.total}) ` : ""}at ε = ${head.epsilon}`;
}

function drawHead(row, head, send) {
  for (const [key, text] of COLUMNS) {
    const title = text || head.what.toLowerCase();
    const sorted = head.by === key ? (head.down ? "descending" : "ascending") : "none";
    const cell = make("th", "", row, { scope: "col" });
    if (!key) {
      cell.textContent = title;
      continue;
    }
    cell.setAttribute("aria-sort", sorted);
    const button = make("button", "bb-sort", cell, {
      type: "button",
      title: `sort by ${title}`,
      "data-key": `head ${key}`,
    });
    button.textContent = title;
    const arrow = { ascending: " ▲", descending: " ▼", none: "" }[sorted];
    make("span", "", button, { "aria-hidden": "true" }).textContent = arrow;
    button.addEventListener("click", () => send({ do: "sort", by: key }));
  }
}

// Arrow keys go from layer to layer; Enter or Space, as everywhere, press the button.
function walk(body, event) {
  const all = [...body.querySelectorAll(".bb-name")];
  const at = all.indexOf(document.activeElement);
  const to = {
    ArrowDown: () => Math.min(at + 1, all.length - 1),
    ArrowUp: () => Math.max(at - 1, 0),
    Home: () => 0,
    End: () => all.length - 1,
  }[event.key];
  if (!to || at < 0) return;
  event.preventDefault();
  event.stopPropagation();
  all[at].tabIndex = -1;
  all[to()].tabIndex = 0;
  all[to()].focus();
}

// ── the ladder ──────────────────────────────────────────────────────────────

function drawLadder(parent, ladder) {
  parent.replaceChildren();
  if (!ladder.levels) return;
  const title = make("div", "bb-close-title", parent);
  make("b", "", title).textContent = ladder.name || "All elements";
  make("span", "", title).textContent = ` ${ladder.note}`;
  if (!ladder.levels.length) return;
  const table = make("table", "bb-rungs", parent, { "aria-label": "Close elements by tolerance" });
  for (const [epsilon, close, total, percent, verdict] of ladder.levels) {
    const row = make("tr", "", table);
    make("th", "", row, { scope: "row" }).textContent = epsilon;
    const bar = make("div", "bb-rung", make("td", "", row), { "aria-hidden": "true" });
    const fill = make("div", `bb-rung-fill bb-${verdict}`, bar);
    fill.style.width = `${total ? (100 * close) / total : 100}%`;
    make("div", "bb-rung-mark", bar);
    const count = `${close.toLocaleString("en")} of ${total.toLocaleString("en")}`;
    make("td", "bb-count", row).textContent = `${count} (${percent})`;
    badge(make("td", "", row), verdict);
  }
  make("div", "bb-close-key", parent).textContent =
    "close: |output − expected| ≤ ε + ε |expected| · ✓ all · ! at least 90 % (the thin line) · ✗ fewer";
  drawWorst(parent, ladder.worst);
}

function drawWorst(parent, worst) {
  if (!worst.length) {
    make("div", "bb-close-key", parent).textContent = "No element differs.";
    return;
  }
  const table = make("table", "bb-worst", parent);
  make("caption", "", table).textContent = "The elements that differ most";
  const top = make("tr", "", make("thead", "", table));
  for (const text of ["place", "output", "expected", "apart"]) {
    make("th", "", top, { scope: "col" }).textContent = text;
  }
  const body = make("tbody", "", table);
  for (const [place, ...values] of worst) {
    const row = make("tr", "", body);
    make("th", "", row, { scope: "row" }).textContent = place;
    for (const value of values) make("td", "", row).textContent = value;
  }
}
