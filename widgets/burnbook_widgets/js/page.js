// What every view begins with: parts of a page, and the theme around it.

function make(tag, name, parent, attributes = {}, text = "") {
  const node = document.createElement(tag);
  if (name) node.className = name;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== "") node.textContent = text;
  parent.append(node);
  return node;
}

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
