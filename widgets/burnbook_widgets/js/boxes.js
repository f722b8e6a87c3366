// Boxes and lines of a graph: how they are drawn, moved and made larger.
//
// A view that uses them has a `floor` that scrolls, the `svg` on it, its `size`, `zoom`,
// and `share`, where the zoom is written.

const PAD = 6; // free on both sides of a text in a box
const ZOOMS = [0.1, 0.15, 0.25, 0.35, 0.5, 0.7, 0.85, 1, 1.25, 1.6, 2, 3];


// An empty picture of a scene with its lines.
function startScene(view, scene, name) {
  view.floor.replaceChildren();
  const [width, height] = (view.size = scene.size);
  view.svg = put("svg", "", view.floor, {
    viewBox: `0 0 ${width} ${height}`,
    role: "group",
    "aria-label": name,
  });
  zoomTo(view, view.zoom);
  view.lines = scene.lines.map((line) => drawLine(view.svg, line));
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

// A box around lines of text, each with its class.
function putBox(svg, kind, [x, y], number, [width, height], lines) {
  const group = put("g", `bb-graph-box bb-graph-${kind}`, svg, {
    role: "button",
    "data-part": number,
    transform: `translate(${x - width / 2},${y - height / 2})`,
  });
  if (kind === "group") put("rect", "bb-graph-behind", group, { x: 5, y: -5, width, height, rx: 3 });
  put("rect", "", group, { width, height, rx: kind === "op" || kind === "group" ? 3 : 12 });
  const texts = lines.map(([name, text], i) => {
    const node = put("text", name, group, { x: width / 2, y: [18, 34, 50, 66][i] }, text);
    fit(node, text, width - 2 * PAD);
    return node;
  });
  return { group, texts };
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

// ── size ────────────────────────────────────────────────────────────────────

// A button of the bar above the picture.
function tool(bar, text, name, act) {
  const made = make("button", "bb-graph-tool", bar, { type: "button", "aria-label": name, title: name }, text);
  made.addEventListener("click", act);
}

function drawZoom(view) {
  tool(view.bar, "−", "smaller", () => step(view, -1));
  view.share = make("span", "bb-graph-share", view.bar);
  tool(view.bar, "+", "larger", () => step(view, 1));
  tool(view.bar, "Fit", "the whole graph", () => fitAll(view));
  zoomTo(view, view.zoom);
}

// Which groups are open, each with a button that closes it.
function drawGroups({ bar }, open, send) {
  tool(bar, "Open all", "open every group", send("unfold"));
  tool(bar, "Close all", "close every group", send("fold"));
  const shown = open.slice(0, 12);
  for (const name of shown) tool(bar, `▾ ${name}`, `close ${name}`, send("fold", name));
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
