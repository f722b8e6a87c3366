// Names for the sliders of a view, as screen readers need them.
//
// A slider of ipywidgets tells its value but not what it is of: its label is only beside
// it. This gives both of its parts, the handle and the number that one can type, the
// words of the label, and follows when they change.

function render({ el }) {
  let box = null;
  let waiting = 0;
  const watcher = new MutationObserver(name);

  function name() {
    for (const slider of box.querySelectorAll(".widget-slider")) {
      const label = slider.querySelector(".widget-label")?.textContent;
      if (!label) continue;
      for (const handle of slider.querySelectorAll(".noUi-handle")) call(handle, label);
      const number = slider.querySelector(".widget-readout");
      if (!number) continue;
      number.setAttribute("role", "textbox");
      call(number, `${label}, value`);
    }
  }

  function begin() {
    box = el.closest(".widget-vbox");
    if (!box) {
      waiting = requestAnimationFrame(begin); // not on the page yet
      return;
    }
    watcher.observe(box, { childList: true, subtree: true });
    name();
  }

  begin();
  return () => {
    cancelAnimationFrame(waiting);
    watcher.disconnect();
  };
}

export default { render };

function call(node, name) {
  if (node.getAttribute("aria-label") !== name) node.setAttribute("aria-label", name);
}
