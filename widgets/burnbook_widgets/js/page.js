// What every view begins with: parts of a page, a pen, and what changes around it.

const SVG = "http://www.w3.org/2000/svg";

function make(tag, name, parent, attributes = {}, text = "") {
  const node = document.createElement(tag);
  if (name) node.className = name;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== "") node.textContent = text;
  parent.append(node);
  return node;
}

// The same for parts of a drawing.
function put(tag, name, parent, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, tag);
  if (name) node.setAttribute("class", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== "") node.textContent = text;
  parent.append(node);
  return node;
}

// A pen on a cleared canvas of so many pixels of the page, sharp on dense screens too.
// It knows the colors of the theme by name, and the face of the page's texts.
function penOf(canvas, width, height) {
  const dense = window.devicePixelRatio || 1;
  const size = [Math.round(width * dense), Math.round(height * dense)];
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  const pen = canvas.getContext("2d");
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  pen.clearRect(0, 0, width, height);
  const style = getComputedStyle(canvas);
  pen.tone = (name) => style.getPropertyValue(`--bb-${name}`).trim();
  pen.face = style.fontFamily;
  return pen;
}

// What Python sent as bytes; and the same as numbers.
function bytesOf(data) {
  return data?.byteLength
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array();
}

function floatsOf(data) {
  return new Float32Array(bytesOf(data).slice().buffer);
}

// The nearest place that there is.
function inside(place, size) {
  return Math.min(Math.max(place, 0), size - 1);
}

// Offer a file as a download of this page.
function download(name, type, parts) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// Listen to a model; what is returned ends it.
function follow(model, listeners) {
  const all = Object.entries(listeners);
  for (const [event, act] of all) model.on(event, act);
  return () => {
    for (const [event, act] of all) model.off(event, act);
  };
}

// Themes change by attributes of the page (JupyterLab) or by the system's setting.
function watchTheme(act) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const page = new MutationObserver(act);
  page.observe(document.body, { attributes: true });
  page.observe(document.documentElement, { attributes: true });
  system.addEventListener("change", act);
  return () => {
    page.disconnect();
    system.removeEventListener("change", act);
  };
}
