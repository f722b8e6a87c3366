// Two buttons: one downloads a reader's work, one gives a saved file back.
//
// Python never pushes the bytes: it says how long the file is, and the page asks for one
// piece after the other, {do: "piece", at}. The other way round the page sends a piece,
// {do: "bring", name, size, at} with one buffer, and waits to be asked for more.

const PIECE = 1 << 20;

function render({ model, el }) {
  const root = make("div", "bb-view bb-work", el, { "data-lm-suppress-shortcuts": "true" });
  const buttons = make("div", "bb-work-buttons", root);
  const save = make("button", "bb-work-save", buttons, { type: "button" });
  save.textContent = "⤓ Save my work";
  const bring = make("button", "bb-work-bring", buttons, { type: "button" });
  bring.textContent = "⤒ Bring it back …";
  const choice = make("input", "", buttons, { type: "file", accept: ".zip", hidden: "" });
  const said = make("div", "bb-work-said", root, { role: "status", "aria-live": "polite" });
  const fault = make("div", "bb-fault", root, { role: "alert" });
  const lines = make("ul", "bb-work-lines", root);
  const hint = make("div", "bb-work-hint", root);
  const view = { model, save, bring, said, coming: null, going: null };

  const show = () => {
    hint.textContent = model.get("hint");
    said.textContent = model.get("said");
    fault.textContent = model.get("fault");
    lines.replaceChildren();
    for (const line of model.get("lines")) make("li", "", lines).textContent = line;
  };
  const events = ["change:said", "change:lines", "change:fault", "change:hint"];
  for (const event of events) model.on(event, show);
  const hear = (message, buffers) => told(view, message, buffers);
  model.on("msg:custom", hear);
  save.addEventListener("click", () => {
    busy(view, true);
    said.textContent = "Packing …";
    model.send({ do: "save" });
  });
  bring.addEventListener("click", () => choice.click());
  choice.addEventListener("change", () => {
    if (!choice.files.length) return;
    busy(view, true);
    view.going = choice.files[0];
    choice.value = "";
    send(view, 0);
  });
  show();
  return () => {
    for (const event of events) model.off(event, show);
    model.off("msg:custom", hear);
    el.replaceChildren();
  };
}

export default { render };

// Buttons stay in the page's order of focus while they wait, so nobody loses a place.
function busy({ save, bring }, waits) {
  for (const button of [save, bring]) button.setAttribute("aria-disabled", String(waits));
}

function told(view, message, buffers) {
  if (message.do === "take") {
    view.coming = { ...message, parts: [], at: 0 };
    view.model.send({ do: "piece", at: 0 });
  } else if (message.do === "piece" && view.coming?.at === message.at) {
    take(view, buffers[0]);
  } else if (message.do === "more" && view.going) {
    send(view, message.at);
  } else if (message.do === "end") {
    view.coming = view.going = null;
    view.said.textContent = "";
    busy(view, false);
  }
}

function take(view, part) {
  const file = view.coming;
  file.parts.push(part);
  file.at += part.byteLength;
  if (file.at < file.size && part.byteLength) {
    view.model.send({ do: "piece", at: file.at });
    return;
  }
  view.coming = null;
  download(file.name, "application/zip", file.parts);
  busy(view, false);
}

async function send(view, at) {
  const { name, size } = view.going;
  const end = Math.min(at + PIECE, size);
  view.said.textContent = `Sending ${Math.round((100 * end) / Math.max(size, 1))} % …`;
  const part = await view.going.slice(at, end).arrayBuffer();
  if (end === size) {
    view.going = null;
    busy(view, false);
  }
  view.model.send({ do: "bring", name, size, at }, undefined, [part]);
}
