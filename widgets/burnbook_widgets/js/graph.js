// A graph as boxes and lines; arrow keys walk through time.
//
// Python sends the scene when groups open or close (boxes, lines, texts), and for each
// step the stage: what is seen of every box (0 nothing, 1 the value, 2 the gradient as
// well), and which box the step is about. Clicks and keys go back as {do: "forward",
// "back", "start", "end"}, {do: "choose", part}, {do: "unfold" or "fold", group}.
// Messages are used, as they pass while a cell awaits.

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
  startScene(view, scene, "the graph, inputs at the top");
  view.boxes = scene.parts.map((part, i) => drawBox(view.svg, part, i, scene.box));
  view.seen = null;
}

function drawBox(svg, [kind, label, shape, value, gradient, x, y, key], number, size) {
  const part = { label, shape, value, gradient };
  const known = value || (kind === "lost" ? "" : "value not kept");
  const made = putBox(svg, kind, [x, y], number, size, [
    ["bb-graph-label", label],
    ["bb-graph-soft", shape || "not kept"],
    [value ? "bb-graph-value" : "bb-graph-soft", known],
    ["bb-graph-gradient", `∂ ${gradient}`],
  ]);
  put("title", "", made.group, {}, [label, shape, value, gradient && `∂ ${gradient}`].filter(Boolean).join("\n"));
  return { group: made.group, part, key, folded: kind === "group", value: made.texts[2], gradient: made.texts[3] };
}

// ── groups and size ─────────────────────────────────────────────────────────

function drawBar(view) {
  const { bar, model } = view;
  const { open, groups } = model.get("scene");
  bar.replaceChildren();
  drawZoom(view);
  const acts = { unfold: "unfold all", fold: "fold" };
  if (groups) drawGroups(view, open, (what, group = "") => () => model.send({ do: acts[what], group }));
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

function drawFacts(list, facts) {
  list.replaceChildren();
  for (const [name, text, how] of facts) {
    make("span", "bb-graph-fact", list).textContent = name;
    const cell = make("div", "", list);
    // A long value can be scrolled, by keys as well.
    const reached = { tabindex: "0", role: "group", "aria-label": name };
    const inside = how === "block" ? make("pre", "", cell, reached) : how ? make("code", "", cell) : cell;
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
