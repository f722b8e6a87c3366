// A graph as boxes and lines; arrow keys walk through time.
//
// Python sends the scene when groups open or close (boxes, lines, texts), and for each
// step the stage: what is seen of every box (0 nothing, 1 the value, 2 the gradient as
// well), and which box the step is about. Clicks and keys go back as {do: "forward",
// "back", "start", "end"}, {do: "choose", part}, {do: "unfold" or "fold", group}.
// Messages are used, as they pass while a cell awaits.

const PAD = 6; // free on both sides of a text in a box
const ZOOMS = [0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 0.85, 1, 1.25, 1.6, 2, 3];

function render({ model, el }) {
  // Keys that a focused box knows are not for the notebook around it.
  const root = make("div", "bb-view bb-graph", el, { "data-lm-suppress-shortcuts": "true" });
  const caption = make("div", "bb-graph-caption", root);
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const bar = make("div", "bb-graph-bar", root, { role: "group", "aria-label": "groups and size" });
  const room = make("div", "bb-graph-room", root);
  const floor = make("div", "bb-graph-floor", room);
  const beside = make("div", "bb-graph-beside", room, { role: "group", "aria-label": "the chosen part" });
  const facts = make("div", "bb-graph-facts", beside);
  legend(root);
  make("div", "bb-graph-keys", root).textContent =
    "Arrow keys → and ← walk through the steps, ↓ and ↑ from box to box; Home and End go all the way; " +
    "Enter opens a group; + − 0 change the size. Drag the picture to move it.";
  const live = make("div", "bb-live", root, { role: "status", "aria-live": "polite" });
  const view = { model, floor, bar, boxes: [], lines: [], zoom: 1, size: [1, 1] };

  const build = () => {
    const held = floor.contains(document.activeElement);
    drawScene(view);
    drawBar(view);
    show();
    revealChosen(view);
    if (held) view.boxes[model.get("chosen")]?.group.focus({ preventScroll: true });
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
    revealChosen(view);
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
    if (group && !view.dragged) choose(view, Number(group.dataset.part), true);
  });
  floor.addEventListener("wheel", (event) => wheel(view, event), { passive: false });
  floor.addEventListener("pointerdown", (event) => drag(view, event));
  build();
  showFault();
  // A view is made before it is on the page: then there is nothing yet to scroll.
  const sizes = new ResizeObserver(() => {
    if (!view.seenOnce && floor.clientHeight) {
      view.seenOnce = true;
      drawScene(view);
      show();
      revealChosen(view);
    }
  });
  sizes.observe(floor);
  return () => {
    sizes.disconnect();
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
    ["group", "a closed group: click to open"],
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
  const [width, height] = (view.size = scene.size);
  const svg = (view.svg = put("svg", "", view.floor, {
    viewBox: `0 0 ${width} ${height}`,
    role: "group",
    "aria-label": "the graph, inputs at the top",
  }));
  zoomTo(view, view.zoom);
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

function drawBox(svg, [kind, label, shape, value, gradient, x, y, key], number, [width, height]) {
  const part = { label, shape, value, gradient };
  const group = put("g", `bb-graph-box bb-graph-${kind}`, svg, {
    role: "button",
    "data-part": number,
    transform: `translate(${x - width / 2},${y - height / 2})`,
  });
  if (kind === "group") put("rect", "bb-graph-behind", group, { x: 5, y: -5, width, height, rx: 3 });
  put("rect", "", group, { width, height, rx: kind === "op" || kind === "group" ? 3 : 12 });
  const write = (down, name, text) => {
    const node = put("text", name, group, { x: width / 2, y: down }, text);
    fit(node, text, width - 2 * PAD);
    return node;
  };
  write(18, "bb-graph-label", label);
  write(34, "bb-graph-soft", shape || "not kept");
  const known = value || (kind === "lost" ? "" : "value not kept");
  const box = {
    group,
    part,
    key,
    folded: kind === "group",
    value: write(50, value ? "bb-graph-value" : "bb-graph-soft", known),
    gradient: write(66, "bb-graph-gradient", `∂ ${gradient}`),
  };
  put("title", "", group, {}, [label, shape, value, gradient && `∂ ${gradient}`].filter(Boolean).join("\n"));
  return box;
}

// Shorten a text until it fits: numbers one by one, words letter by letter; of the path
// of a parameter the end says the most.
function fit(node, text, room) {
  const path = text.includes(".") && !text.includes(" ");
  const figures = /^(∂ )?[−\d]/.test(text) && text.includes(" ");
  let kept = text.replace(/ …$/, "");
  while (kept.length > 1 && node.getComputedTextLength() > room) {
    const space = figures ? kept.lastIndexOf(" ") : -1;
    kept = path ? kept.slice(1) : kept.slice(0, space > 2 ? space : -1);
    node.textContent = path ? `…${kept}` : `${kept}${space > 2 ? " …" : "…"}`;
  }
}

// ── groups and size ─────────────────────────────────────────────────────────

function drawBar(view) {
  const { bar, model } = view;
  const { open, groups } = model.get("scene");
  bar.replaceChildren();
  const button = (text, name, act) => {
    const made = make("button", "bb-graph-tool", bar, { type: "button", "aria-label": name, title: name }, text);
    made.addEventListener("click", act);
    return made;
  };
  button("−", "smaller", () => step(view, -1));
  view.share = make("span", "bb-graph-share", bar);
  button("+", "larger", () => step(view, 1));
  button("Fit", "the whole graph", () => fitAll(view));
  zoomTo(view, view.zoom);
  if (!groups) return;
  const send = (what, group = "") => () => model.send({ do: what, group });
  button("Open all", "open every group", send("unfold all"));
  button("Close all", "close every group", send("fold"));
  const shown = open.slice(0, 12);
  for (const name of shown) button(`▾ ${name}`, `close ${name}`, send("fold", name));
  if (open.length > shown.length) make("span", "", bar, {}, `and ${open.length - shown.length} more`);
}

function zoomTo(view, zoom, at = null) {
  const { floor, svg, size } = view;
  const frame = floor.getBoundingClientRect();
  const [x, y] = at ?? [frame.width / 2, frame.height / 2];
  const before = [(floor.scrollLeft + x) / view.zoom, (floor.scrollTop + y) / view.zoom];
  view.zoom = zoom;
  svg?.setAttribute("width", size[0] * zoom);
  svg?.setAttribute("height", size[1] * zoom);
  if (view.share) view.share.textContent = `${Math.round(100 * zoom)} %`;
  floor.scrollLeft = before[0] * zoom - x;
  floor.scrollTop = before[1] * zoom - y;
}

function step(view, by, at = null) {
  const near = ZOOMS.findIndex((zoom) => zoom > view.zoom - (by < 0 ? 1e-6 : -1e-6));
  const place = by > 0 ? near : (near < 0 ? ZOOMS.length : near) - 1;
  zoomTo(view, ZOOMS[Math.max(0, Math.min(place < 0 && by > 0 ? ZOOMS.length - 1 : place, ZOOMS.length - 1))], at);
}

function fitAll(view) {
  const { floor, size } = view;
  const room = [floor.clientWidth - 4, 556];
  zoomTo(view, Math.max(ZOOMS[0], Math.min(1, room[0] / size[0], room[1] / size[1])));
}

function wheel(view, event) {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const frame = view.floor.getBoundingClientRect();
  step(view, event.deltaY < 0 ? 1 : -1, [event.clientX - frame.left, event.clientY - frame.top]);
}

function drag(view, down) {
  if (down.button) return;
  const { floor } = view;
  const from = [floor.scrollLeft, floor.scrollTop];
  view.dragged = false;
  const move = (event) => {
    const [x, y] = [event.clientX - down.clientX, event.clientY - down.clientY];
    if (Math.hypot(x, y) > 4) view.dragged = true;
    if (view.dragged) [floor.scrollLeft, floor.scrollTop] = [from[0] - x, from[1] - y];
  };
  const end = () => {
    removeEventListener("pointermove", move);
    removeEventListener("pointerup", end);
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", end);
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
    group.setAttribute("aria-label", describe(part, seen[i], box.folded));
  });
  for (const { group, ends } of view.lines) {
    const back = ends.every((end) => seen[end] === 2);
    group.classList.toggle("bb-graph-back", back);
    group.classList.toggle("bb-graph-there", !back && ends.every((end) => seen[end]));
  }
  if (view.boxes[now]) reveal(view.floor, view.boxes[now].group);
}

function describe(part, seen, folded) {
  const texts = [folded ? `group ${part.label}, closed` : part.label, part.shape];
  if (seen && part.value) texts.push(`value ${part.value}`);
  if (seen === 2) texts.push(`gradient ${part.gradient}`);
  return texts.filter(Boolean).join(", ");
}

function revealChosen(view) {
  const box = view.boxes[view.model.get("chosen")];
  if (box) reveal(view.floor, box.group);
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

function choose(view, part, opens = false) {
  const box = view.boxes[part];
  if (!box) return;
  if (box.folded && opens) {
    view.model.send({ do: "unfold", group: box.key });
    return;
  }
  box.group.focus({ preventScroll: true });
  reveal(view.floor, box.group);
  if (box.folded) mark1(view, part);
  else view.model.send({ do: "choose", part: box.key });
}

// A closed group can be walked over without being opened.
function mark1(view, part) {
  view.boxes.forEach((box, i) => box.group.setAttribute("tabindex", i === part ? "0" : "-1"));
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
    Enter: () => choose(view, at, true),
    " ": () => choose(view, at, true),
    "+": () => step(view, 1),
    "-": () => step(view, -1),
    0: () => fitAll(view),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  act();
}
