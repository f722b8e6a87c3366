// ── part 6: a chart by itself ───────────────────────────────────────────────

export default { render: ({ model, el }) => draw(model, el, null) };
