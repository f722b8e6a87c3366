// The live chart, part 1: the page around the curves.
//
// The parts chart_page, chart_series, chart_axes, chart_norms and chart are read one
// after another as one module, and then chart_alone, or chart_controls and chart_panel
// for a training. No library: a reader can follow it from top to bottom.

const DASH = { train: [], valid: [7, 4] };
const RUN_DASH = [[2, 3], [10, 3, 2, 3], [5, 2], [12, 4], [2, 2, 6, 2], [1, 4]];
const ENDED = ["finished", "closed"]; // states of a run
const MARKS = ["up", "diamond", "plus", "down", "cross", "bar"]; // one for each other run
const ANSWER_STAYS = 3000; // milliseconds before news may take the place of an answer

function build(el) {
  const root = make("div", "bb-view bb-chart", el);
  const hush = make("style", "", root); // hides what stands in for the panel without it
  const name = make("div", "bb-name", root);
  const lost = make("p", "bb-lost", root, { role: "alert", hidden: "" });
  const controls = make("div", "bb-controls", root);
  const notice = make("p", "bb-notice", root, { role: "note" });
  const status = make("div", "bb-status", root);
  const headline = make("div", "bb-headline", status);
  const bar = make("div", "bb-bar", status, {
    role: "progressbar",
    "aria-label": "training progress",
    "aria-valuemin": 0,
    "aria-valuemax": 100,
  });
  const fill = make("div", "bb-fill", bar);
  const detail = make("div", "bb-detail", status);
  const legend = make("div", "bb-legend", root);
  legend.setAttribute("role", "group");
  legend.setAttribute("aria-label", "curves");
  const marks = { train: '<circle cx="17" cy="6" r="3.5"/>', valid: '<rect x="13.5" y="2.5" width="7" height="7"/>' };
  const splits = Object.entries(marks).map(([split, mark]) => {
    const key = make("button", "bb-plain bb-key bb-split", legend, { type: "button" });
    key.innerHTML = sample(split, mark);
    return [split, key];
  });
  make("span", "bb-key", legend).innerHTML =
    '<svg width="34" height="12" aria-hidden="true">' +
    '<rect class="bb-train bb-band" x="2" width="30" height="12"/></svg>range of the batches';
  const aside = make("span", "bb-soft", legend);
  const runs = make("div", "bb-runs", root, { role: "group", "aria-label": "other runs" });
  const zoomed = make("div", "bb-zoomed", root);
  const range = make("span", "", zoomed);
  const whole = make("button", "bb-plain", zoomed, { type: "button" });
  whole.textContent = "Show all epochs";
  const panels = make("div", "bb-panels", root);
  const norms = make("div", "bb-norms", root);
  const report = make("div", "bb-report", root);
  const live = make("div", "bb-live", root, { "aria-live": "polite", role: "status" });
  return {
    root, hush, name, lost, controls, notice, status, headline, bar, fill, detail, legend,
    splits, aside, runs, zoomed, range, whole, panels, norms, report, live, cursor: null,
    walks: false, // by keys: the pointer only rests there
    news: "", answered: 0,
  };
}

function sample(name, mark) {
  const dash = DASH[name].join(" ");
  return (
    `<svg width="34" height="12" aria-hidden="true" class="bb-${name}">` +
    `<line x1="1" y1="6" x2="33" y2="6" stroke-width="2" stroke-dasharray="${dash}"/>` +
    `${mark}</svg>${name}`
  );
}

function writeStatus(view, status) {
  const percent = Math.round(100 * (status.done || 0));
  view.root.dataset.state = status.state || "";
  view.status.hidden = !status.headline;
  view.legend.hidden = !status.headline;
  view.headline.textContent = status.headline || "";
  view.detail.textContent = status.detail || "";
  view.notice.textContent = status.notice || "";
  view.notice.hidden = !status.notice;
  view.bar.hidden = ENDED.includes(status.state);
  view.detail.hidden = view.bar.hidden;
  view.fill.style.width = `${percent}%`;
  view.bar.setAttribute("aria-valuenow", percent);
  view.bar.setAttribute("aria-valuetext", status.headline || "");
  view.news = status.said || "";
  writeNews(view);
}

// An answer to a key: what happens by itself is told after it was heard.
function answer(view, text) {
  clearTimeout(view.answered);
  view.live.textContent = text;
  view.answered = setTimeout(() => endAnswer(view), ANSWER_STAYS);
}

function endAnswer(view) {
  clearTimeout(view.answered);
  view.answered = 0;
  writeNews(view);
}

function writeNews(view) {
  if (view.answered || !view.news || view.news === view.live.textContent) return;
  view.live.textContent = view.news;
}

// The splits are buttons too: pressed while their curves are seen.
function writeSplits(view, splits) {
  for (const [split, key] of view.splits) {
    const seen = splits.includes(split);
    key.setAttribute("aria-pressed", seen);
    key.title = seen ? `Hide ${split}` : `Show ${split}`;
  }
}

// One button for each other run: its line, its name, pressed while it is shown. The
// buttons stay while the runs do, so that a frame takes neither the focus nor a click.
function writeRuns(view, names, shown, toggle) {
  const runs = JSON.stringify(names);
  if (view.runs.dataset.runs !== runs) {
    view.runs.dataset.runs = runs;
    view.runs.replaceChildren();
    view.runs.hidden = !names.length;
    names.forEach((name, place) => makeRun(view.runs, name, place, toggle));
    if (names.length) make("span", "bb-soft", view.runs).textContent = "thick: valid, thin: train";
  }
  names.forEach((name, place) => {
    const chip = view.runs.children[place];
    const seen = shown.includes(place);
    chip.setAttribute("aria-pressed", seen);
    chip.title = seen ? `Hide ${name}` : `Show ${name}`;
  });
}

function makeRun(runs, name, place, toggle) {
  const chip = make("button", "bb-plain bb-run", runs, { type: "button" });
  chip.innerHTML =
    `<svg width="34" height="12" aria-hidden="true" style="stroke:var(--bb-line${place + 2});` +
    `fill:var(--bb-line${place + 2})"><line x1="1" y1="6" x2="33" y2="6" stroke-width="2" ` +
    `stroke-dasharray="${RUN_DASH[place].join(" ")}"/><path stroke="none" ` +
    `d="${OUTLINES[MARKS[place]]}" transform="translate(17 6) scale(4)"/></svg>`;
  make("span", "", chip).textContent = name;
  chip.addEventListener("click", () => toggle(place));
}

const OUTLINES = {
  up: "M0,-1.2L1.1,0.8L-1.1,0.8Z",
  down: "M0,1.2L1.1,-0.8L-1.1,-0.8Z",
  diamond: "M0,-1.3L1.1,0L0,1.3L-1.1,0Z",
  plus: "M-1.2,-.35H-.35V-1.2H.35V-.35H1.2V.35H.35V1.2H-.35V.35H-1.2Z",
  cross: "M-1.2,-.8L-.8,-1.2L0,-.4L.8,-1.2L1.2,-.8L.4,0L1.2,.8L.8,1.2L0,.4L-.8,1.2L-1.2,.8L-.4,0Z",
  bar: "M-.4,-1.3H.4V1.3H-.4Z",
};

