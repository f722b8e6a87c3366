// ── part 2: series ──────────────────────────────────────────────────────────
//
// Python sends rows as float32: of this run (position in epochs, mean, lowest,
// highest), of other runs (position, mean). `parts` says which rows are which.

function numbersOf(data) {
  if (!data || !data.byteLength) return new Float32Array(0);
  return new Float32Array(
    data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength)
  );
}

function cut(numbers, start, rows, width) {
  const table = [];
  for (let row = 0; row < rows; row++) {
    table.push(numbers.subarray(start + row * width, start + (row + 1) * width));
  }
  return table;
}

function readSeries(frame, data) {
  const numbers = numbersOf(data);
  let start = 0;
  return (frame.parts || []).map(([panel, split, kind, rows]) => {
    const table = cut(numbers, start, rows, 4);
    start += 4 * rows;
    return { panel, split, kind, table };
  });
}

function readRuns(runs, data) {
  const numbers = numbersOf(data);
  let start = 0;
  return (runs.parts || []).map(([run, panel, split, rows]) => {
    const table = cut(numbers, start, rows, 2);
    start += 2 * rows;
    return { run, panel, split, table };
  });
}

function find(panel, split, kind) {
  const one = panel.series.find((s) => s.split === split && s.kind === kind);
  return one ? one.table : [];
}

function nearest(table, x) {
  let best = null;
  for (const row of table) {
    if (best === null || Math.abs(row[0] - x) < Math.abs(best[0] - x)) best = row;
  }
  return best;
}

// Exponential mean without the pull to zero at the start:
// sᵢ = β sᵢ₋₁ + (1 − β) yᵢ, shown as sᵢ / (1 − βⁱ). A gap stays a gap.
function smooth(table, beta) {
  let sum = 0;
  let weight = 1;
  return table.map((row) => {
    if (!Number.isFinite(row[1])) return row;
    sum = beta * sum + (1 - beta) * row[1];
    weight *= beta;
    return [row[0], sum / (1 - weight), row[2], row[3]];
  });
}

// A row whose mean cannot be drawn leaves a gap.
function unbroken(table, log) {
  const found = [[]];
  for (const row of table) {
    if (Number.isFinite(row[1]) && (!log || row[1] > 0)) found.at(-1).push(row);
    else if (found.at(-1).length) found.push([]);
  }
  return found.filter((part) => part.length);
}

// What is in sight: the tables of this run, and those of the other runs that are shown.
function tablesOf(panel) {
  const own = panel.series.filter((one) => panel.kinds.includes(one.kind));
  return [...own, ...panel.others].map((one) => one.table);
}

function yRange(panel) {
  const [from, to] = panel.span;
  let low = Infinity;
  let high = -Infinity;
  for (const table of tablesOf(panel)) {
    for (const [x, mean] of table) {
      if (!Number.isFinite(mean) || (panel.log && mean <= 0)) continue;
      if (x < from - 1e-6 || x > to + 1e-6) continue;
      low = Math.min(low, mean);
      high = Math.max(high, mean);
    }
  }
  if (low > high) return panel.log ? [0.1, 1] : [0, 1];
  if (panel.log) {
    const room = Math.max(1.1, (high / low) ** 0.06);
    return [low / room, high * room];
  }
  const margin = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  const base = low >= 0 && low < (high - low) * 0.25 ? 0 : low - margin;
  return [base, high + margin];
}

function figure(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "not a number";
}

function readOut(panel) {
  const x = panel.cursor;
  const unit = panel.unit ? ` ${panel.unit}` : "";
  const lines = [];
  const step = panel.kinds.includes("steps") && nearest(find(panel, "train", "steps"), x);
  if (step) {
    lines.push(`epoch ${step[0].toFixed(2)}: batches ${figure(step[1])}${unit}`);
    if (step[3] > step[2]) lines[0] += ` (${figure(step[2])} to ${figure(step[3])})`;
  }
  for (const split of panel.kinds.includes("epochs") ? ["train", "valid"] : []) {
    const mean = nearest(find(panel, split, "epochs"), x);
    if (mean) lines.push(`epoch ${Math.ceil(mean[0])}: ${split} mean ${figure(mean[1])}${unit}`);
  }
  for (const other of panel.others) {
    const mean = nearest(other.table, x);
    if (mean && Math.abs(mean[0] - x) <= 1) {
      lines.push(`${other.name}, epoch ${Math.ceil(mean[0])}: ${other.split} ${figure(mean[1])}${unit}`);
    }
  }
  return lines;
}

function describe(panel) {
  const parts = ["train", "valid"].flatMap((split) => {
    const table = find(panel, split, "epochs");
    if (!table.length) return [];
    return [`${split} from ${figure(table[0][1])} to ${figure(table.at(-1)[1])}`];
  });
  for (const { name, split, table } of panel.others) {
    if (table.length) parts.push(`${name} ${split} to ${figure(table.at(-1)[1])}`);
  }
  const facts = parts.length ? parts.join(", ") : "no epoch finished yet";
  const scale = panel.log ? ", logarithmic" : "";
  return (
    `${panel.name} by epoch${scale}: ${facts}. ` +
    "Arrow keys read the epochs, plus and minus zoom, Shift and arrows move, 0 shows all."
  );
}
