// A module as a tree: arrow keys walk, fold and unfold.
//
// Python sends the rows that are to be seen, from top to bottom, and the facts of the
// chosen one. Clicks and keys go back as {do, path} with do = choose, fold, unfold or
// freeze. Messages are used, as they pass while a cell awaits.

const STATES = { learns: "● learns", partly: "◐ partly", frozen: "○ frozen", "": "" };
const COLUMNS = ["layer", "type", "parameters", "", "memory", "shape", "FLOPs"];

function render({ model, el }) {
  // Keys that a focused row knows are not for the notebook around it.
  const root = make("div", "bb-view bb-tree", el, { "data-lm-suppress-shortcuts": "true" });
  const heading = make("div", "bb-tree-head", root);
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const stage = make("div", "bb-tree-stage", root);
  const names = make("div", "bb-tree-row bb-tree-names", stage, { "aria-hidden": "true" });
  const tree = make("div", "bb-tree-rows", stage, { role: "tree" });
  const more = make("div", "bb-tree-more", root);
  const facts = make("div", "bb-tree-facts", root, { role: "group", "aria-label": "the chosen part" });
  make("div", "bb-tree-keys", root).textContent =
    "Arrow keys walk, unfold (→) and fold (←); F freezes or unfreezes.";
  const live = make("div", "bb-live", root, { role: "status", "aria-live": "polite" });
  const view = { model, tree };

  const show = () => {
    const head = model.get("head");
    heading.replaceChildren();
    make("b", "", heading).textContent = head.title || "";
    make("span", "", heading).textContent = ` ${head.summary || ""}`;
    stage.classList.toggle("bb-tree-ran", Boolean(head.ran));
    names.replaceChildren();
    for (const name of COLUMNS) make("span", "", names).textContent = name;
    tree.setAttribute("aria-label", `parts of ${head.title}`);
    more.textContent = head.more ? `… and ${head.more.toLocaleString("en")} more: fold something` : "";
    drawRows(view);
  };
  const mark = () => {
    for (const row of tree.children) choose(row, row.dataset.path === model.get("chosen"));
    facts.replaceChildren();
    for (const [name, text] of model.get("facts")) {
      const pair = make("span", "", facts);
      make("span", "bb-tree-fact", pair).textContent = `${name} `;
      pair.append(text);
    }
  };
  const showFault = () => (fault.textContent = model.get("fault"));
  const say = () => (live.textContent = model.get("said"));
  const listeners = {
    "change:head": show,
    "change:rows": show,
    "change:chosen": mark,
    "change:facts": mark,
    "change:fault": showFault,
    "change:said": say,
  };
  const unfollow = follow(model, listeners);
  tree.addEventListener("keydown", (event) => press(view, event));
  tree.addEventListener("click", (event) => click(view, event));
  show();
  mark();
  showFault();
  return () => {
    unfollow();
    el.replaceChildren();
  };
}

export default { render };

// ── rows ────────────────────────────────────────────────────────────────────

function drawRows({ model, tree }) {
  const held = tree.contains(document.activeElement) ? document.activeElement.dataset.path : null;
  const rows = model.get("rows");
  tree.replaceChildren();
  for (const one of rows) drawRow(tree, one, one.path === model.get("chosen"));
  if (![...tree.children].some((row) => row.tabIndex === 0) && tree.firstChild) {
    tree.firstChild.tabIndex = 0;
  }
  if (held === null) return;
  const chosen = (path) => [...tree.children].find((row) => row.dataset.path === path);
  (chosen(held) || chosen(model.get("chosen")) || tree.firstChild)?.focus({ preventScroll: true });
}

function drawRow(tree, one, chosen) {
  const row = make("div", `bb-tree-row${one.param ? " bb-tree-param" : ""}`, tree, {
    role: "treeitem",
    "aria-level": one.level,
    "aria-posinset": one.place,
    "aria-setsize": one.of,
    "aria-label": describe(one),
    "data-path": one.path,
  });
  if (one.open !== null) row.setAttribute("aria-expanded", String(one.open));
  choose(row, chosen);
  const name = make("span", "bb-tree-name", row, { title: one.path });
  name.style.paddingLeft = `${18 * (one.level - 1)}px`;
  const sign = { null: "", true: "▾", false: "▸" }[one.open];
  make("span", "bb-tree-fold", name).textContent = sign;
  name.append(one.label);
  make("span", "bb-tree-type", row).textContent = one.type;
  number(row, one.params, one.share);
  make("span", `bb-tree-state bb-tree-${one.state || "none"}`, row).textContent = STATES[one.state];
  make("span", "bb-tree-number", row).textContent = one.memory;
  make("span", "bb-tree-shape", row, { title: one.output }).textContent = one.output;
  number(row, one.flops, one.work);
}

// A number above a bar that says how much of the whole it is.
function number(row, text, share) {
  const cell = make("span", "bb-tree-number bb-tree-bar", row);
  cell.style.setProperty("--bb-share", `${100 * share}%`);
  cell.textContent = text;
}

function choose(row, chosen) {
  row.setAttribute("aria-selected", String(chosen));
  row.tabIndex = chosen ? 0 : -1;
}

function describe(one) {
  const parts = [one.label, one.type];
  if (one.params) parts.push(`${one.params} parameters`, STATES[one.state].slice(2));
  if (one.memory) parts.push(one.memory);
  if (one.output) parts.push(`shape ${one.output}`);
  if (one.flops) parts.push(`${one.flops} FLOPs`);
  return parts.join(", ");
}

// ── clicks and keys ─────────────────────────────────────────────────────────

function go(view, row) {
  if (!row) return;
  for (const other of view.tree.children) choose(other, other === row);
  row.focus();
  view.model.send({ do: "choose", path: row.dataset.path });
}

function fold(view, row) {
  const open = row.getAttribute("aria-expanded");
  if (open !== null) view.model.send({ do: open === "true" ? "fold" : "unfold", path: row.dataset.path });
}

function click(view, event) {
  const row = event.target.closest(".bb-tree-row");
  if (!row) return;
  if (event.target.closest(".bb-tree-fold")) {
    row.focus();
    fold(view, row);
  } else {
    go(view, row);
  }
}

function press(view, event) {
  const row = event.target.closest(".bb-tree-row");
  if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
  const level = (one) => Number(one.getAttribute("aria-level"));
  const open = row.getAttribute("aria-expanded");
  const parent = () => {
    let above = row.previousElementSibling;
    while (above && level(above) >= level(row)) above = above.previousElementSibling;
    return above;
  };
  const act = {
    ArrowDown: () => go(view, row.nextElementSibling),
    ArrowUp: () => go(view, row.previousElementSibling),
    ArrowRight: () => (open === "false" ? fold(view, row) : open === "true" && go(view, row.nextElementSibling)),
    ArrowLeft: () => (open === "true" ? fold(view, row) : go(view, parent())),
    Home: () => go(view, view.tree.firstElementChild),
    End: () => go(view, view.tree.lastElementChild),
    Enter: () => fold(view, row),
    " ": () => fold(view, row),
    f: () => view.model.send({ do: "freeze", path: row.dataset.path }),
  }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}
