// ── part 7: the panel of a training, found again ─────────────────────────────────────
//
// A page that is loaded anew asks its kernel for the widgets there are, and makes a model
// of each; `initialize` below is called for ours. What is missing is their place on the
// page: saved outputs hold a picture, outputs that were not saved are gone. JupyterLab
// gives a widget its document, so the panel puts itself back: into the output that has
// its key, else below the cell that started it, else into a corner of the page. Where
// there is no such document (other front ends), `burnbook_widgets.live()` does it.
//
// A kernel that is busy tells of its panel a second time (Panel.open_again). Then there
// are two models of one panel, and the views follow the newer one.

const PANELS = (globalThis[Symbol.for("burnbook.panels")] ??= new Map());
const VIEW = "application/vnd.jupyter.widget-view+json";
const SETTLE = 2500; // milliseconds in which the outputs of a new panel arrive

function entryOf(key) {
  if (!PANELS.has(key)) {
    PANELS.set(key, { key, model: null, mounts: new Set(), pending: new Map(), lost: "", watched: null });
  }
  return PANELS.get(key);
}

// All views of a panel follow its newest model.
function render({ model, el }) {
  const { key } = model.get("about");
  const entry = entryOf(key);
  entry.model ??= model;
  let shown = draw(entry.model, el, entry);
  const mount = {
    follow(next) {
      shown();
      shown = draw(next, el, entry);
    },
    refresh: () => shown.refresh(),
    // When a run ends its output is written anew: what is below must not jump meanwhile.
    hold() {
      const place = el.closest(".jp-OutputArea-child");
      if (!place) return;
      place.style.minHeight = `${place.offsetHeight}px`;
      setTimeout(() => place.style.removeProperty("min-height"), 2 * SETTLE);
    },
  };
  entry.mounts.add(mount);
  return () => {
    entry.mounts.delete(mount);
    shown();
    if (!entry.mounts.size && !entry.model) PANELS.delete(key);
  };
}

function initialize({ model }) {
  const { key } = model.get("about");
  const entry = entryOf(key);
  entry.model = model;
  entry.lost = "";
  for (const mount of entry.mounts) mount.follow(model);
  say(entry, { do: "here" });
  watchKernel(entry);
  const patience = setTimeout(() => findPlace(entry), SETTLE);
  const settle = () => {
    for (const mount of entry.mounts) mount.hold();
    setTimeout(() => keepEnding(entry), SETTLE);
  };
  model.on("change:ending", settle);
  settle();
  return () => {
    clearTimeout(patience);
    model.off("change:ending", settle);
    if (entry.model !== model) return;
    entry.unwatch?.();
    if (entry.mounts.size) entry.model = null;
    else PANELS.delete(key);
  };
}

// A message, if there is somebody who can hear it.
function say(entry, content) {
  if (entry.lost || !entry.model) return false;
  try {
    entry.model.send(content);
    return true;
  } catch {
    lose(entry, "The kernel does not answer");
    return false;
  }
}

function lose(entry, why) {
  entry.lost = why;
  entry.pending.clear();
  for (const mount of entry.mounts) mount.refresh();
}

// What has become of the kernel. Its death is for good: another one has no such run.
function watchKernel(entry) {
  const session = entry.model.widget_manager?.context?.sessionContext;
  if (!session?.statusChanged || entry.watched === session) return;
  entry.watched = session;
  const reasons = {
    restarting: "The kernel was restarted", autorestarting: "The kernel died and was restarted",
    dead: "The kernel died", terminating: "The kernel was shut down",
  };
  const status = (_, now) => reasons[now] && lose(entry, reasons[now]);
  // A restart by the toolbar is a new connection to a kernel of the same name and id.
  const changed = (_, { oldValue, newValue }) => {
    const same = oldValue && newValue && oldValue.id === newValue.id;
    lose(entry, same ? reasons.restarting : newValue ? "Another kernel was chosen" : "The kernel was shut down");
  };
  const connection = (_, now) => {
    entry.offline = now !== "connected";
    for (const mount of entry.mounts) mount.refresh();
  };
  session.statusChanged.connect(status);
  session.kernelChanged.connect(changed);
  session.connectionStatusChanged?.connect(connection);
  entry.unwatch = () => {
    session.statusChanged.disconnect(status);
    session.kernelChanged.disconnect(changed);
    session.connectionStatusChanged?.disconnect(connection);
    entry.watched = null;
  };
}

// What a panel says whose kernel is gone: since when, and what is left.
function farewell(entry, status) {
  if (!entry.lost) return entry.offline ? "No connection to the server: this is how far it was seen." : "";
  if (ENDED.includes(status.state)) return `${entry.lost}: the curves stay as they are.`;
  const kept = status.kept?.length
    ? ` Newest checkpoint seen: epoch ${status.kept[0]}, in ${status.folder}; the same cell with .checkpoint(${status.kept[0]}) goes on from it.`
    : " No checkpoint of it was seen.";
  return `${entry.lost}: this run is gone. Last seen in ${status.epoch || "its first epoch"}.${kept}`;
}

// ── its place in the notebook ──

// Every output of the notebook with its mark: [outputs, place, output, mark].
function markedOutputs(entry) {
  const cells = entry.model?.widget_manager?.context?.model?.cells;
  const found = [];
  for (let i = 0; i < (cells?.length || 0); i++) {
    const { outputs } = cells.get(i);
    for (let j = 0; j < (outputs?.length || 0); j++) {
      const mark = outputs.get(j).metadata?.burnbook;
      if (mark) found.push([outputs, j, outputs.get(j), mark]);
    }
  }
  return found;
}

function liveForm(entry) {
  return { [VIEW]: { version_major: 2, version_minor: 0, model_id: entry.model.get("about").view } };
}

// Takes away what an earlier run of the cell left. Why: running a cell again clears its
// outputs, but a page that is loaded before it is saved gets those of the file back. If
// one training among them is not of this run of the cell, all of them are older than it.
function clearEarlier(outputs, about) {
  const keyOf = (output) => output.metadata?.burnbook?.panel ?? output.metadata?.burnbook?.below;
  const isOurs = (key) => {
    const other = PANELS.get(key)?.model?.get("about");
    return other?.cell === about.cell && other?.cell_run === about.cell_run;
  };
  const all = Array.from({ length: outputs.length }, (_, j) => outputs.get(j));
  if (!about.cell_run || !all.some((output) => keyOf(output) && !isOurs(keyOf(output)))) return;
  const kept = all.filter((output) => keyOf(output) && isOurs(keyOf(output))).map((output) => output.toJSON());
  outputs.clear();
  for (const output of kept) outputs.add(output);
}

function findPlace(entry) {
  if (!entry.model) return;
  let found = 0;
  for (const [outputs, place, output, mark] of markedOutputs(entry)) {
    if (mark.panel !== entry.key) continue;
    found += 1;
    if (output.data[VIEW]) continue;
    const json = output.toJSON();
    outputs.set(place, { ...json, data: { ...json.data, ...liveForm(entry) } });
  }
  const about = entry.model.get("about");
  const told = ENDED.includes(entry.model.get("status").state) && about.seen;
  if (found || entry.mounts.size || told || !about.view) return;
  const cells = entry.model.widget_manager?.context?.model?.cells;
  if (!cells) return;
  for (let i = 0; i < cells.length; i++) {
    if (about.cell && cells.get(i).id === about.cell) {
      const { outputs } = cells.get(i);
      if (!outputs.length) cells.get(i).trusted = true; // there is nothing but ours
      if (!cells.get(i).trusted) break;
      clearEarlier(outputs, about);
      const mark = { burnbook: { so_far: "panel", panel: entry.key } };
      const below = { burnbook: { so_far: "picture", below: entry.key } };
      const words = `Training ${about.name}`;
      outputs.add({ output_type: "display_data", metadata: mark, data: { ...liveForm(entry), "text/plain": words } });
      outputs.add({ output_type: "display_data", metadata: below, data: { "text/html": `<div class="bb-kept-${entry.key}"></div>`, "text/plain": words } });
      return;
    }
  }
  openCorner(entry, about);
}

// The end of a run, into the outputs that nobody could replace any more.
function keepEnding(entry) {
  const ending = entry.model?.get("ending");
  if (!ending?.panel) return;
  for (const [outputs, place, output, mark] of markedOutputs(entry)) {
    const json = output.toJSON();
    if (mark.ended) continue;
    if (mark.panel === entry.key) {
      const { data, metadata } = ending.panel;
      const seen = json.data[VIEW] ? liveForm(entry) : {};
      outputs.set(place, { ...json, metadata: mark.still ? json.metadata : metadata, data: { ...seen, ...data } });
    } else if (mark.below === entry.key) {
      outputs.set(place, { ...json, ...ending.report });
    }
  }
  if (entry.mounts.size) say(entry, { do: "seen" });
}

// The cell is not on this page: a corner of the page, to be opened or closed.
function openCorner(entry, about) {
  const corner = make("section", "bb-corner", document.body, { "aria-label": `training ${about.name}` });
  const sheet = make("style", "", corner);
  sheet.textContent = CORNER;
  const head = make("div", "bb-corner-head", corner);
  make("b", "", head, {}, `${about.name}`);
  make("span", "", head, {}, "trains in this kernel; its cell is not on this page.");
  const open = make("button", "", head, { type: "button" }, "Show");
  const close = make("button", "", head, { type: "button", "aria-label": "Close" }, "✕");
  const body = make("div", "", corner);
  let stop = null;
  open.addEventListener("click", () => {
    if (stop) stop();
    stop = stop ? null : render({ model: entry.model, el: body });
    open.textContent = stop ? "Hide" : "Show";
  });
  close.addEventListener("click", () => {
    stop?.();
    corner.remove();
  });
}

const CORNER = `.bb-corner { position: fixed; right: 16px; bottom: 30px; z-index: 1000; padding: 8px 12px;
  max-width: min(900px, 90vw); max-height: 80vh; overflow: auto; border: 1px solid #868e98;
  border-radius: 4px; box-shadow: 0 2px 12px #0005; font: 13px/1.45 system-ui, sans-serif;
  background: var(--jp-layout-color1, Canvas); color: var(--jp-ui-font-color1, CanvasText); }
.bb-corner-head { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; }`;

export default { initialize, render };
