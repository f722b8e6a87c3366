// A plane with points, where which class is likely, and losses, live.
//
// Python sends the points (x, y, class, for the test?) as float32 rows, the map as one
// byte per cell, the losses as float32 rows (epoch, train, test) and a status. Keys go
// back as {do: "toggle" | "step" | "reset"}.

const SIDE = 340;
const CHART = { left: 46, right: 16, top: 24, bottom: 40, height: 250 };
const DASH = ["", "7 4"];

function render({ model, el }) {
  const root = make("div", "bb-view bb-play", el, { "data-lm-suppress-shortcuts": "true" });
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const room = make("div", "bb-play-room", root);
  const plane = make("canvas", "bb-play-plane", room, { tabindex: 0, role: "img" });
  const beside = make("div", "bb-play-beside", room);
  const line = make("div", "bb-play-line", beside);
  const chart = make("div", "bb-play-chart", beside, { role: "img" });
  const legend = make("div", "bb-play-legend", beside);
  legend.innerHTML = keys();
  make("div", "bb-play-soft", beside).textContent =
    "With the plane in focus: Space trains and pauses, S is one step, R starts over.";
  const script = make("textarea", "bb-play-code", root, {
    readonly: "",
    rows: 18,
    spellcheck: "false",
    "aria-label": "a script that trains to the same numbers",
  });
  const live = make("div", "bb-live", root, { role: "status", "aria-live": "polite" });
  const view = { model, plane, chart };

  const show = () => {
    const status = model.get("status");
    line.textContent = (status.line || "").replaceAll(" · ", "\n");
    plane.setAttribute("aria-label", `points and the map of classes; ${status.line || ""}`);
    root.dataset.running = String(Boolean(status.running));
    drawPlane(view);
    drawChart(view);
  };
  const showCode = () => {
    script.value = model.get("code");
    script.hidden = !script.value;
  };
  const showFault = () => (fault.textContent = model.get("fault"));
  const say = () => (live.textContent = model.get("said"));
  const listeners = {
    "change:points": show,
    "change:status": show,
    "change:code": showCode,
    "change:fault": showFault,
    "change:said": say,
  };
  const unfollow = follow(model, listeners);
  plane.addEventListener("keydown", (event) => press(model, event));
  const stopTheme = watchTheme(() => drawPlane(view));
  const sizes = new ResizeObserver(() => {
    drawPlane(view); // its colors are known only once it is on the page
    drawChart(view);
  });
  sizes.observe(chart);
  show();
  showCode();
  showFault();
  return () => {
    stopTheme();
    sizes.disconnect();
    unfollow();
    el.replaceChildren();
  };
}

export default { render };

function keys() {
  const key = (inside, text) =>
    `<span><svg width="34" height="12" aria-hidden="true">${inside}</svg>${text}</span>`;
  return (
    key('<circle class="bb-play-fill-0" cx="17" cy="6" r="4"/>', "first class") +
    key('<rect class="bb-play-fill-1" x="13" y="2" width="8" height="8"/>', "second class") +
    key('<circle class="bb-play-test" cx="17" cy="6" r="4"/>', "hollow: test points") +
    key('<line class="bb-play-0" x1="1" x2="33" y1="6" y2="6"/>', "training loss") +
    key('<line class="bb-play-1" x1="1" x2="33" y1="6" y2="6" stroke-dasharray="7 4"/>', "test loss")
  );
}

// ── the plane ───────────────────────────────────────────────────────────────

function drawPlane({ model, plane }) {
  const { grid, span } = model.get("status");
  if (!grid) return;
  const pen = penOf(plane, SIDE, SIDE);
  const { tone } = pen;
  const colors = [tone("blue"), tone("orange")];
  drawMap(pen, model.get("heat"), grid, colors);
  drawBoundary(pen, model.get("heat"), grid, tone("ink"));
  const at = (value) => ((value + span) / (2 * span)) * SIDE;
  const rows = floatsOf(model.get("points"));
  for (let i = 0; i < rows.length; i += 4) {
    drawPoint(pen, at(rows[i]), at(-rows[i + 1]), rows[i + 2], rows[i + 3], colors, tone("paper"));
  }
}

function drawMap(pen, heat, grid, colors) {
  const shades = colors.map(channels);
  const small = document.createElement("canvas");
  small.width = small.height = grid;
  const brush = small.getContext("2d");
  const image = brush.createImageData(grid, grid);
  for (let i = 0; i < grid * grid; i++) {
    const chance = heat.getUint8(i) / 255;
    const [red, green, blue] = shades[chance > 0.5 ? 1 : 0];
    image.data.set([red, green, blue, Math.round(255 * (0.06 + 0.74 * Math.abs(chance - 0.5)))], 4 * i);
  }
  brush.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = true;
  pen.drawImage(small, 0, 0, SIDE, SIDE);
}

// The line where one class is as likely as the other: within each square of four
// neighbors from edge to edge, where the chance between two corners passes a half.
function drawBoundary(pen, heat, grid, ink) {
  const size = SIDE / grid;
  const over = (row, column) => heat.getUint8(row * grid + column) - 127.5;
  pen.strokeStyle = ink;
  pen.lineWidth = 1.4;
  pen.beginPath();
  for (let row = 0; row + 1 < grid; row++) {
    for (let column = 0; column + 1 < grid; column++) {
      const corners = [[0, 0], [0, 1], [1, 1], [1, 0]].map(([down, across]) => [
        (column + across + 0.5) * size,
        (row + down + 0.5) * size,
        over(row + down, column + across),
      ]);
      const cuts = [];
      corners.forEach(([x, y, here], i) => {
        const [nextX, nextY, there] = corners[(i + 1) % 4];
        if (here > 0 === there > 0) return;
        const part = here / (here - there);
        cuts.push([x + part * (nextX - x), y + part * (nextY - y)]);
      });
      for (let i = 0; i + 1 < cuts.length; i += 2) {
        pen.moveTo(...cuts[i]);
        pen.lineTo(...cuts[i + 1]);
      }
    }
  }
  pen.stroke();
}

function drawPoint(pen, x, y, kind, test, colors, paper) {
  pen.beginPath();
  if (kind) pen.rect(x - 3.4, y - 3.4, 6.8, 6.8);
  else pen.arc(x, y, 3.8, 0, 7);
  pen.fillStyle = test ? paper : colors[kind];
  pen.strokeStyle = test ? colors[kind] : paper;
  pen.lineWidth = test ? 2 : 1;
  pen.fill();
  pen.stroke();
}

function channels(text) {
  const number = parseInt(text.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

// ── the losses ──────────────────────────────────────────────────────────────

function drawChart({ model, chart }) {
  const width = chart.clientWidth;
  const rows = floatsOf(model.get("losses"));
  if (!width || !rows.length) return;
  chart.replaceChildren();
  const svg = put("svg", "", chart, { width, height: CHART.height, "aria-hidden": "true" });
  const right = width - CHART.right;
  const bottom = CHART.height - CHART.bottom;
  const last = Math.max(1, rows.at(-3));
  const finite = [...rows].filter((value, i) => i % 3 && Number.isFinite(value));
  const high = Math.max(...finite, 1e-9) * 1.05;
  const sx = (epoch) => CHART.left + (epoch / last) * (right - CHART.left);
  const sy = (loss) => bottom - (loss / high) * (bottom - CHART.top);
  for (const value of ticks(high, 4)) {
    put("line", "bb-play-grid", svg, { x1: CHART.left, x2: right, y1: sy(value), y2: sy(value) });
    put("text", "", svg, { x: CHART.left - 7, y: sy(value) + 4, "text-anchor": "end" }, value);
  }
  for (const value of ticks(last, 5).filter(Number.isInteger)) {
    put("text", "", svg, { x: sx(value), y: bottom + 17, "text-anchor": "middle" }, value);
  }
  put("path", "bb-play-axis", svg, { d: `M${CHART.left},${CHART.top} V${bottom} H${right}` });
  put("text", "", svg, { x: CHART.left, y: 12, "text-anchor": "middle" }, "loss");
  const middle = (CHART.left + right) / 2;
  put("text", "", svg, { x: middle, y: bottom + 34, "text-anchor": "middle" }, "epoch");
  for (const split of [0, 1]) {
    let path = "";
    for (let i = 0; i < rows.length; i += 3) {
      const loss = rows[i + 1 + split];
      if (Number.isFinite(loss)) path += `${path ? "L" : "M"}${sx(rows[i]).toFixed(1)},${sy(loss).toFixed(1)}`;
    }
    put("path", `bb-play-${split}`, svg, { d: path, "stroke-dasharray": DASH[split] });
  }
  const figure = (value) => Number(value.toPrecision(3));
  chart.setAttribute(
    "aria-label",
    `losses over ${last} epochs: train now ${figure(rows.at(-2))}, test now ${figure(rows.at(-1))}`,
  );
}

// Round numbers from 0: multiples of 1, 2, 2.5 or 5 times a power of ten.
function ticks(high, count) {
  const rough = high / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((one) => one >= rough);
  const found = [];
  for (let k = 0; k * step <= high; k++) found.push(Number((k * step).toPrecision(6)));
  return found;
}

// ── keys ────────────────────────────────────────────────────────────────────

function press(model, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const what = { " ": "toggle", s: "step", r: "reset" }[event.key.toLowerCase()];
  if (!what) return;
  event.preventDefault();
  event.stopPropagation();
  model.send({ do: what });
}
