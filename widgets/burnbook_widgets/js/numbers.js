// Sliders with number boxes that keep values.
//
// Python sends `rows` of {key, label, value, low, high, log, whole,
// about, group}. What the
// reader moves or types goes back as {do: "turn", key, value}; what is only shown never
// does, so a value between two places of a slider stays as it is. `answers` counts what
// Python has heard: a refused number leaves `rows` as they were.

const PLACES = 1000; // of a slider whose number is not whole

function render({ model, el }) {
  const root = make("div", "bb-view bb-numbers", el, { "data-lm-suppress-shortcuts": "true" });
  const view = { model, root, parts: new Map(), groups: new Map(), dragged: "", queued: null, sent: 0 };
  const show = () => showRows(view);
  // The notebook takes the arrow keys from sliders that it does not know.
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
  });
  const unfollow = follow(model, { "change:rows": show, "change:answers": show });
  show();
  return () => {
    clearTimeout(view.sent);
    unfollow();
    el.replaceChildren();
  };
}

export default { render };

function showRows(view) {
  const rows = view.model.get("rows");
  if (rows.map((row) => row.key).join() !== [...view.parts.keys()].join()) {
    view.root.replaceChildren();
    view.groups = new Map();
    view.parts = new Map(rows.map((row) => [row.key, makeRow(view, row)]));
  }
  for (const row of rows) showRow(view, row);
}

function groupOf(view, name) {
  if (!name) return view.root;
  if (!view.groups.has(name)) {
    const group = make("fieldset", "bb-number-group", view.root);
    make("legend", "", group, { title: name }, name);
    view.groups.set(name, group);
  }
  return view.groups.get(name);
}

function makeRow(view, { key, label, about, group }) {
  const line = make("label", "bb-number", groupOf(view, group), about ? { title: about } : {});
  make("span", "bb-number-label", line, {}, label);
  const slider = make("input", "bb-number-slider", line, { type: "range", "aria-label": label });
  const box = make("input", "bb-number-box", line, {
    type: "text",
    inputmode: "decimal",
    autocomplete: "off",
    "aria-label": `${label}, value`,
  });
  const row = () => view.model.get("rows").find((one) => one.key === key);
  slider.addEventListener("input", () => {
    view.dragged = key;
    const value = valueAt(row(), Number(slider.value));
    box.value = numberText(value);
    size(box);
    slider.setAttribute("aria-valuetext", box.value);
    tell(view, key, value);
  });
  slider.addEventListener("change", () => (view.dragged = ""));
  slider.addEventListener("blur", () => (view.dragged = ""));
  const typed = () => {
    const value = Number(box.value.replace("−", "-").replace(",", "."));
    if (box.value.trim() === "" || !Number.isFinite(value)) showRow(view, row());
    else if (value !== row().value) tell(view, key, value);
  };
  box.addEventListener("change", typed);
  box.addEventListener("input", () => size(box));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") showRow(view, row(), true);
  });
  return { slider, box };
}

function showRow(view, row, anyway = false) {
  const { slider, box } = view.parts.get(row.key);
  if (view.dragged === row.key && !anyway) return; // the hand knows better
  const [low, high] = row.whole ? [row.low, row.high] : [0, PLACES];
  Object.assign(slider, { min: low, max: high, step: 1 });
  slider.value = row.whole ? row.value : placeOf(row);
  box.value = numberText(row.value);
  size(box);
  slider.setAttribute("aria-valuetext", box.value);
}

// Where on its slider a number is; the place is rounded, the number is not.
function placeOf({ value, low, high, log }) {
  const scale = log ? Math.log : (number) => number;
  const share = (scale(value) - scale(low)) / (scale(high) - scale(low) || 1);
  return Number.isFinite(share) ? Math.round(PLACES * share) : 0;
}

// The number at a place, with no more digits than places can tell apart.
function valueAt({ low, high, log, whole }, place) {
  if (whole) return place;
  const share = place / PLACES;
  if (log) return Number((low * (high / low) ** share).toPrecision(3));
  const step = (high - low) / PLACES;
  const digits = Math.max(0, Math.min(100, 1 - Math.floor(Math.log10(step))));
  return Number((low + (high - low) * share).toFixed(digits));
}

// A number to its last digit: 0.9995, 0.000012 as 1.2e-5.
function numberText(value) {
  const small = value !== 0 && Math.abs(value) < 1e-3;
  return small ? value.toExponential() : String(value);
}

function size(box) {
  box.style.width = `${Math.max(6, box.value.length + 2)}ch`;
}

// At most twenty messages a second while a slider moves; the last one always goes.
function tell(view, key, value) {
  view.queued = { do: "turn", key, value };
  if (view.sent) return;
  const send = () => {
    view.sent = 0;
    if (!view.queued) return;
    view.model.send(view.queued);
    view.queued = null;
    view.sent = setTimeout(send, 50);
  };
  send();
}
