// ── part 2: series ──────────────────────────────────────────────────────────
//
// Python sends rows as float32: of this run (position in epochs, mean, lowest, highest,
// step, seconds), of other runs (position, mean). `parts` says which rows are which.
const WIDTH = 6;
const COLUMN = [0, 4, 5]; // of what runs to the right: epoch, step, time

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
    const table = cut(numbers, start, rows, WIDTH);
    start += WIDTH * rows;
    return { panel, split, kind, table };
  });
}

// Every batch of a part of the run, one table for each panel that has it.
function readFine(fine, data) {
  const numbers = numbersOf(data);
  const found = new Map();
  let start = 0;
  for (const [panel, rows] of fine.parts || []) {
    found.set(panel, cut(numbers, start, rows, WIDTH));
    start += WIDTH * rows;
  }
  return found;
}

// The buckets, and every batch where it is known.
function refined(table, fine, span) {
  if (!fine?.length) return table;
  const [from, to] = span;
  return [
    ...table.filter((row) => row[0] < from - 1e-6), ...fine,
    ...table.filter((row) => row[0] > to + 1e-6),
  ];
}

// Positions are epochs everywhere; these two go to the axis that is shown, and back. In
// between, what is known of the batches says where; beyond them, the pace goes on.
function toAxis(panel, x) {
  return panel.axis ? between(panel.way, x, 0, COLUMN[panel.axis]) : x;
}

function fromAxis(panel, value) {
  return panel.axis ? between(panel.way, value, COLUMN[panel.axis], 0) : value;
}

function between(rows, x, from, to) {
  if (rows.length < 2) return x;
  let at = rows.findIndex((row) => row[from] >= x);
  if (at < 0) at = rows.length - 1;
  const [a, b] = [rows[Math.max(0, at - 1)], rows[Math.max(1, at)]];
  const width = b[from] - a[from];
  return width ? a[to] + ((x - a[from]) / width) * (b[to] - a[to]) : b[to];
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

// The own tables that are to be seen.
function ownTables(panel) {
  return panel.series.filter((one) => panel.kinds.includes(one.kind) && panel.splits.includes(one.split));
}

function seen(panel, split, kind) {
  return panel.kinds.includes(kind) && panel.splits.includes(split) ? find(panel, split, kind) : [];
}

function nearest(table, x) {
  let best = null;
  for (const row of table) {
    if (best === null || Math.abs(row[0] - x) < Math.abs(best[0] - x)) best = row;
  }
  return best;
}

// Exponential mean without the pull to zero at the start:
// sᵢ = β sᵢ₋₁ + (1 − β) yᵢ, shown as sᵢ / (1 − βⁱ), where i counts steps: a row that is k
// steps after the last one counts like k equal ones. A gap stays a gap.
function smooth(table, beta) {
  let sum = 0;
  let weight = 1;
  let before = table.length ? table[0][4] - 1 : 0;
  return table.map((row) => {
    if (!Number.isFinite(row[1])) return row;
    const keep = beta ** Math.max(1, row[4] - before);
    before = row[4];
    sum = keep * sum + (1 - keep) * row[1];
    weight *= keep;
    return [row[0], sum / (1 - weight), ...row.subarray(2)];
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

// Which epochs have a mean that is no number: they leave a gap, which has to be said.
function gapText(panel) {
  const rows = ["train", "valid"].flatMap((split) => find(panel, split, "epochs"));
  const gaps = rows.filter((row) => !Number.isFinite(row[1])).map((row) => Math.ceil(row[0]));
  if (!gaps.length) return "";
  const [first, last] = [Math.min(...gaps), Math.max(...gaps)];
  return ` · not a number in ${first === last ? `epoch ${first}` : `epochs ${first} to ${last}`}`;
}

// What is in sight: the tables of this run, and those of the other runs that are shown.
function tablesOf(panel) {
  return [...ownTables(panel), ...panel.others].map((one) => one.table);
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

// A place on the axis in words.
function placeText(panel, x) {
  if (!panel.axis) return `epoch ${x.toFixed(2)}`;
  const value = toAxis(panel, x);
  return panel.axis === 1 ? `step ${Math.round(value)}` : duration(value);
}

function duration(seconds) {
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function readOut(panel) {
  const x = panel.view.cursor;
  const unit = panel.unit ? ` ${panel.unit}` : "";
  const lines = [];
  const step = nearest(seen(panel, "train", "steps"), x);
  if (step) {
    const one = step[3] > step[2] ? "batches" : "batch";
    lines.push(`${placeText(panel, step[0])}: ${one} ${figure(step[1])}${unit}`);
    if (step[3] > step[2]) lines[0] += ` (${figure(step[2])} to ${figure(step[3])})`;
  }
  for (const split of ["train", "valid"]) {
    const mean = nearest(seen(panel, split, "epochs"), x);
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
    if (!table.length || !panel.splits.includes(split)) return [];
    return [`${split} from ${figure(table[0][1])} to ${figure(table.at(-1)[1])}`];
  });
  for (const { name, split, table } of panel.others) {
    if (table.length) parts.push(`${name} ${split} to ${figure(table.at(-1)[1])}`);
  }
  const facts = parts.length ? parts.join(", ") : "no epoch finished yet";
  const scale = panel.log ? ", logarithmic" : "";
  return (
    `${panel.name} by ${["epoch", "step", "time"][panel.axis]}${scale}: ${facts}. ` +
    "Arrow keys read the epochs, plus and minus zoom, Shift and arrows move, 0 shows all."
  );
}
