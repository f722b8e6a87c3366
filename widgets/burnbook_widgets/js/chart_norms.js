// ── part 4: the norms of each layer ─────────────────────────────────────────
//
// `norms` names the layers; `norms_data` has for each the norm of its weights, of its
// gradients, and the gradients' past. A bar shows the gradients on a logarithmic scale.

function writeNorms(view, norms, data) {
  const names = norms.layers || [];
  view.norms.hidden = !norms.open;
  if (!norms.open) {
    view.norms.replaceChildren();
    return;
  }
  const rows = cut(numbersOf(data), 0, names.length, norms.width || 2);
  let table = view.norms.querySelector("table");
  if (!table || table.tBodies[0].rows.length !== names.length) {
    view.norms.replaceChildren();
    table = layNorms(view.norms, norms, names);
  }
  if (!rows.length || rows.some((row) => row.length < 2)) return;
  const logs = rows.map((row) => Math.log10(row[1])).filter(Number.isFinite);
  const top = Math.max(...logs);
  const span = Math.max(2, top - Math.min(...logs) + 0.3); // two decades at least
  rows.forEach((row, place) => {
    const [, weight, grad, share, , past] = table.tBodies[0].rows[place].cells;
    weight.textContent = figure(row[0]);
    grad.querySelector(".bb-value").textContent = figure(row[1]);
    const part = (Math.log10(row[1]) - top + span) / span;
    grad.querySelector(".bb-gauge").style.width = `${Number.isFinite(part) ? 100 * Math.max(part, 0.02) : 0}%`;
    share.textContent = row[0] > 0 ? figure(row[1] / row[0]) : "–";
    drawPast(past, Array.from(row.subarray(2)));
  });
}

function layNorms(parent, norms, names) {
  const table = make("table", "", parent);
  make("caption", "", table).textContent = norms.caption || "";
  const head = make("tr", "", make("thead", "", table));
  for (const title of ["layer", "‖weights‖", "‖gradients‖", "gradients / weights", "", "gradients so far (log)"]) {
    make(title ? "th" : "td", "", head, title ? { scope: "col" } : {}).textContent = title;
  }
  const body = make("tbody", "", table);
  for (const name of names) {
    const row = make("tr", "", body);
    make("th", "", row, { scope: "row" }).textContent = name;
    make("td", "", row);
    const grad = make("td", "bb-grad", row);
    make("span", "bb-value", grad);
    make("div", "bb-gauge", make("div", "bb-track", grad, { "aria-hidden": "true" }));
    make("td", "", row);
    make("td", "", row);
    const past = make("td", "bb-past", row, { "aria-hidden": "true" });
    past.innerHTML = '<svg viewBox="0 0 120 20" width="120" height="20"><polyline/></svg>';
  }
  if (norms.more) make("p", "", parent).textContent = norms.more;
  return table;
}

function drawPast(cell, values) {
  const logs = values.map(Math.log10);
  const known = logs.filter(Number.isFinite);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = high - low || 1;
  const points = logs.flatMap((value, i) => {
    if (!Number.isFinite(value)) return [];
    return [`${((i * 118) / Math.max(1, logs.length - 1) + 1).toFixed(1)},${(18 - ((value - low) / room) * 16).toFixed(1)}`];
  });
  cell.querySelector("polyline").setAttribute("points", points.join(" "));
}
