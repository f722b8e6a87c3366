// The table of a runs browser: tick the runs to compare.
//
// Python sends head, rows and notes; a tick goes back as {run}, a pressed head as
// {sort}. Messages are used, as they pass while a cell awaits. The boxes are real check
// boxes and the heads real buttons, so keys just work.

function render({ model, el }) {
  const root = make("div", "bb-view bb-runs-browser", el);
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const stage = make("div", "bb-runs-stage", root);
  const notes = make("div", "bb-runs-notes", root);
  const live = make("div", "bb-live", root, { role: "status", "aria-live": "polite" });

  function show() {
    const focused = document.activeElement?.dataset?.run;
    const sorted = document.activeElement?.dataset?.sort;
    stage.replaceChildren();
    const table = make("table", "", stage);
    make("caption", "bb-live", table).textContent = "Runs: tick those to compare";
    const head = make("tr", "", make("thead", "", table));
    make("th", "", head, { scope: "col" }).textContent = "compare";
    for (const [name, key, way] of model.get("head")) {
      const cell = make("th", "", head, { scope: "col" });
      if (!key) {
        cell.textContent = name;
        continue;
      }
      cell.setAttribute("aria-sort", way);
      const button = make("button", "bb-runs-sort", cell, { type: "button", "data-sort": key, title: `sort by ${key}` }, name);
      make("span", "", button, { "aria-hidden": "true" }, { ascending: " ▲", descending: " ▼", none: "" }[way]);
      button.addEventListener("click", () => model.send({ sort: key }));
      if (key === sorted) button.focus(); // made anew
    }
    const body = make("tbody", "", table);
    for (const { run, cells, chosen } of model.get("rows")) {
      const line = make("tr", chosen ? "bb-runs-chosen" : "", body);
      const box = make("input", "", make("td", "", line), {
        type: "checkbox",
        "aria-label": `compare ${run}`,
        "data-run": run,
      });
      box.checked = chosen;
      box.addEventListener("change", () => model.send({ run }));
      cells.forEach((text, place) => {
        const cell = make(place ? "td" : "th", "", line, place ? {} : { scope: "row" });
        cell.textContent = text;
        if (/^[-\d.]/.test(text) && place > 1) cell.className = "bb-runs-number";
      });
      if (run === focused) box.focus(); // the box was made anew
    }
    if (!body.rows.length) {
      make("p", "", stage).textContent = "No run has all these words.";
      table.remove();
    }
    notes.textContent = model.get("notes").join(" · ");
  }

  const showFault = () => (fault.textContent = model.get("fault"));
  const say = () => (live.textContent = model.get("said"));
  const listeners = {
    "change:head": show,
    "change:rows": show,
    "change:notes": show,
    "change:fault": () => {
      showFault();
      show(); // a tick that was refused goes back
    },
    "change:said": say,
  };
  const unfollow = follow(model, listeners);
  show();
  showFault();
  return () => {
    unfollow();
    el.replaceChildren();
  };
}

export default { render };
