// Building blocks · Autodiff. A graph as boxes and lines; arrow keys walk through time.
//
// Python sends the scene once (boxes, lines, texts), and for each step the stage: what
// is seen of every part (0 nothing, 1 the value, 2 the gradient as well), and which part
// the step is about. Clicks and keys go back as {do: "forward", "back", "start", "end"}
// or {do: "choose", part}. Messages are used, as they pass while a cell awaits.

const LETTERS = 20; // of a text in a box
const HEAD = 17;

function render({ model, el }) {
  // Keys that a focused box knows are not for the notebook around it.
  const root = make("div", "bb-view bb-graph", el, { "data-lm-suppress-shortcuts": "true" });
  const caption = make("div", "bb-graph-caption", root);
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const room = make("div", "bb-graph-room", root);
  const floor = make("div", "bb-graph-floor", room);
  const beside = make("div", "bb-graph-beside", room, { role: "group", "aria-label": "the chosen part" });
  const facts = make("div", "bb-graph-facts", beside);
  legend(root);
  make("div", "bb-graph-keys", root).textContent =
    "Arrow keys → and ← walk through the steps, ↓ and ↑ from part to part; Home and End go all the way.";
  const live = make("div", "bb-live", root, { role: "status", "aria-live": "polite" });
  const view = { model, floor, boxes: [], lines: [] };

  const build = () => {
    drawScene(view);
    show();
  };
  const show = () => {
    const stage = model.get("stage");
    caption.textContent = stage.caption || "";
    drawStage(view, stage);
    mark();
  };
  const mark = () => {
    const chosen = model.get("chosen");
    view.boxes.forEach((box, i) => {
      box.group.setAttribute("aria-pressed", String(i === chosen));
      box.group.setAttribute("tabindex", i === chosen ? "0" : "-1");
    });
    drawFacts(facts, model.get("facts"));
  };
  const showFault = () => (fault.textContent = model.get("fault"));
  const say = () => (live.textContent = model.get("said"));
  const listeners = {
    "change:scene": build,
    "change:stage": show,
    "change:chosen": mark,
    "change:facts": mark,
    "change:fault": showFault,
    "change:said": say,
  };
  const unfollow = follow(model, listeners);
  floor.addEventListener("keydown", (event) => press(view, event));
  floor.addEventListener("click", (event) => {
    const group = event.target.closest(".bb-graph-box");
    if (group) choose(view, Number(group.dataset.part));
  });
  build();
  showFault();
  return () => {
    unfollow();
    el.replaceChildren();
  };
}

export default { render };

function legend(root) {
  const keys = make("div", "bb-graph-legend", root);
  for (const [name, text] of [
    ["leaf", "asks for its gradient"],
    ["op", "op"],
    ["data", "constant"],
  ]) {
    const key = make("span", "", keys);
    make("i", `bb-graph-key bb-graph-key-${name}`, key, { "aria-hidden": "true" });
    key.append(text);
  }
  make("span", "bb-graph-value", keys).textContent = "value ↓";
  make("span", "bb-graph-gradient", keys).textContent = "∂ gradient ↑ (dashed)";
}

// ── the scene: once ─────────────────────────────────────────────────────────

function drawScene(view) {
  const scene = view.model.get("scene");
  view.floor.replaceChildren();
  const [width, height] = scene.size;
  const svg = put("svg", "", view.floor, {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: "group",
    "aria-label": "the graph, inputs at the top",
  });
  view.lines = scene.lines.map((line) => drawLine(svg, line));
  view.boxes = scene.parts.map((part, i) => drawBox(svg, part, i, scene.box));
  view.seen = null;
}

function drawLine(svg, [from, to, numbers]) {
  const path = [];
  for (let i = 0; i < numbers.length; i += 2) path.push([numbers[i], numbers[i + 1]]);
  const group = put("g", "bb-graph-line", svg, { "aria-hidden": "true" });
  put("path", "", group, { d: curve(path) });
  const [x, y] = path.at(-1);
  put("polygon", "bb-graph-down", group, { points: `${x},${y} ${x - 4},${y - 8} ${x + 4},${y - 8}` });
  const [left, top] = path[0];
  put("polygon", "bb-graph-up", group, {
    points: `${left},${top} ${left - 4},${top + 8} ${left + 4},${top + 8}`,
  });
  return { group, ends: [from, to] };
}

// From point to point, leaving and entering straight down.
function curve(path) {
  const [x, y] = path[0];
  let text = `M${x},${y}`;
  for (let i = 1; i < path.length; i++) {
    const [fromX, fromY] = path[i - 1];
    const [toX, toY] = path[i];
    const middle = (fromY + toY) / 2;
    text += ` C${fromX},${middle} ${toX},${middle} ${toX},${toY}`;
  }
  return text;
}

function drawBox(svg, [kind, label, shape, value, gradient, x, y], number, [width, height]) {
  const part = { label, shape, value, gradient };
  const group = put("g", `bb-graph-box bb-graph-${kind}`, svg, {
    role: "button",
    "data-part": number,
    transform: `translate(${x - width / 2},${y - height / 2})`,
  });
  put("rect", "", group, { width, height, rx: kind === "op" ? 3 : 12 });
  const write = (down, name, text) => {
    const cut = text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text;
    return put("text", name, group, { x: width / 2, y: down }, cut);
  };
  write(18, "bb-graph-label", head(label));
  write(34, "bb-graph-soft", shape || "not kept");
  const known = value || (kind === "lost" ? "" : "value not kept");
  return {
    group,
    part,
    value: write(50, value ? "bb-graph-value" : "bb-graph-soft", known),
    gradient: write(66, "bb-graph-gradient", `∂ ${gradient}`),
  };
}

// Of the path of a parameter the end says the most.
function head(label) {
  if (label.length <= HEAD) return label;
  return label.includes(".") ? `…${label.slice(1 - HEAD)}` : `${label.slice(0, HEAD - 1)}…`;
}

// ── the stage: each step ────────────────────────────────────────────────────

function drawStage(view, stage) {
  const { seen = [], now = -1 } = stage;
  view.boxes.forEach((box, i) => {
    const { group, value, gradient, part } = box;
    value.style.display = seen[i] ? "" : "none";
    gradient.style.display = seen[i] === 2 ? "" : "none";
    group.classList.toggle("bb-graph-waiting", !seen[i]);
    group.classList.toggle("bb-graph-now", i === now);
    group.setAttribute("aria-label", describe(part, seen[i]));
  });
  for (const { group, ends } of view.lines) {
    const back = ends.every((end) => seen[end] === 2);
    group.classList.toggle("bb-graph-back", back);
    group.classList.toggle("bb-graph-there", !back && ends.every((end) => seen[end]));
  }
  if (view.boxes[now]) reveal(view.floor, view.boxes[now].group);
}

function describe(part, seen) {
  const texts = [part.label, part.shape];
  if (seen && part.value) texts.push(`value ${part.value}`);
  if (seen === 2) texts.push(`gradient ${part.gradient}`);
  return texts.filter(Boolean).join(", ");
}

// Scroll the picture, and not the page, until a box is in it.
function reveal(floor, group) {
  const frame = floor.getBoundingClientRect();
  const box = group.getBoundingClientRect();
  if (!box.height) return;
  if (box.top < frame.top) floor.scrollTop -= frame.top - box.top + 12;
  if (box.bottom > frame.bottom) floor.scrollTop += box.bottom - frame.bottom + 12;
  if (box.left < frame.left) floor.scrollLeft -= frame.left - box.left + 12;
  if (box.right > frame.right) floor.scrollLeft += box.right - frame.right + 12;
}

function drawFacts(list, facts) {
  list.replaceChildren();
  for (const [name, text, how] of facts) {
    make("span", "bb-graph-fact", list).textContent = name;
    const cell = make("div", "", list);
    const inside = how ? make(how === "block" ? "pre" : "code", "", cell) : cell;
    inside.textContent = text;
  }
}

// ── clicks and keys ─────────────────────────────────────────────────────────

function choose(view, part) {
  const box = view.boxes[part];
  if (!box) return;
  box.group.focus({ preventScroll: true });
  reveal(view.floor, box.group);
  view.model.send({ do: "choose", part });
}

function press(view, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const held = event.target.closest(".bb-graph-box");
  const at = held ? Number(held.dataset.part) : view.model.get("chosen");
  const send = (what) => () => view.model.send({ do: what });
  const act = {
    ArrowRight: send("forward"),
    ArrowLeft: send("back"),
    Home: send("start"),
    End: send("end"),
    ArrowDown: () => choose(view, Math.min(at + 1, view.boxes.length - 1)),
    ArrowUp: () => choose(view, Math.max(at - 1, 0)),
    Enter: () => choose(view, at),
    " ": () => choose(view, at),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}
