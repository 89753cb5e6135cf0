// Draws the figures when they come near what is seen, follows the theme, and lets the legends hide results.
(() => {
  "use strict";
  const PAPER_WIDTH_PX = 680;
  const NARROW_PX = 600;
  const page = JSON.parse(document.getElementById("figures").textContent);
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const coarse = matchMedia("(pointer: coarse)");
  const plots = page.figures
    .map((figure) => ({
      figure,
      element: document.getElementById(figure.id),
      height: figure.plot.layout.height,
      painted: null, // the colours that it was drawn in
      hidden: new Set(), // groups
    }))
    .filter(({ element }) => element !== null);
  const plotOf = new Map(plots.map((plot) => [plot.element, plot]));
  let printing = false;

  const theme = () => {
    if (printing) return "light"; // paper is
    return root.dataset.theme === "light" || root.dataset.theme === "dark" ? root.dataset.theme : dark.matches ? "dark" : "light";
  };

  const label = (value) =>
    Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 }).replace(/,/g, "\u2009");

  // Ticks of a logarithmic axis: decades, with 2 and 5 where there are few, round numbers within one decade.
  function logTicks(low, high) {
    const ticks = [];
    if (high - low < 1) {
      const from = 10 ** low, to = 10 ** high;
      const magnitude = 10 ** Math.floor(Math.log10((to - from) / 5));
      const step = [1, 2, 5, 10].map((s) => s * magnitude).find((s) => s >= (to - from) / 5);
      for (let k = Math.ceil(from / step); k * step <= to; k++) ticks.push(k * step);
      return ticks;
    }
    for (let e = Math.floor(low); e <= high; e++) {
      for (const s of high - low > 3 ? [1] : [1, 2, 5]) {
        const at = s * 10 ** e;
        if (Math.log10(at) >= low && Math.log10(at) <= high) ticks.push(at);
      }
    }
    return ticks;
  }

  function followZoom(element, change) {
    for (const name of ["xaxis", "yaxis"]) {
      const axis = element.layout[name];
      const zoomed = Object.keys(change).some((key) => key.startsWith(name + ".") && /range/.test(key));
      if (axis.type !== "log" || !zoomed) continue;
      const ticks = logTicks(axis.range[0], axis.range[1]);
      Plotly.relayout(element, { [name + ".tickvals"]: ticks, [name + ".ticktext"]: ticks.map(label) });
    }
  }

  const heightOf = ({ figure, element, height }) =>
    printing || element.clientWidth < NARROW_PX ? figure.narrow_height : height;

  function fit(plot) {
    const { element } = plot;
    const width = printing ? PAPER_WIDTH_PX : element.clientWidth;
    if (plot.painted === null || width === 0) return;
    const height = heightOf(plot);
    if (width !== element.layout.width || height !== element.layout.height) Plotly.relayout(element, { width, height });
  }

  // Sets a member that is named as plotly names it: "marker.line.color", "shapes[0].line.color".
  function put(target, path, value) {
    const names = path.replace(/\[(\d+)\]/g, ".$1").split(".");
    const last = names.pop();
    for (const name of names) target = target[name] ??= {};
    target[last] = value;
  }

  function draw(plot) {
    if (plot.painted !== null) return;
    const { figure, element } = plot;
    const { data, layout } = figure.plot;
    if (coarse.matches) {
      layout.dragmode = false; // a finger on a plot scrolls the page
      layout.margin.t = 10;
    }
    plot.painted = theme();
    const colors = figure.colors[plot.painted];
    for (const [path, values] of Object.entries(colors.traces)) {
      values.forEach((value, i) => value !== null && put(data[i], path, value));
    }
    for (const [path, value] of Object.entries(colors.layout)) put(layout, path, value);
    for (const trace of data) trace.visible = !plot.hidden.has(trace.meta.group);
    layout.width = printing ? PAPER_WIDTH_PX : element.clientWidth || undefined;
    layout.height = heightOf(plot);
    Plotly.newPlot(element, data, layout, {
      displaylogo: false,
      displayModeBar: coarse.matches ? false : "hover",
      showSendToCloud: false,
      plotlyServerURL: "",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      toImageButtonOptions: { filename: figure.id, scale: 2 },
    });
    element.style.minHeight = "";
    near.unobserve(element);
    new ResizeObserver(() => fit(plot)).observe(element);
    element.on("plotly_relayout", (change) => followZoom(element, change));
    root.dataset.drawn = String(Number(root.dataset.drawn) + 1);
  }

  function paint() {
    const name = theme();
    for (const plot of plots) {
      if (plot.painted === null || plot.painted === name) continue;
      const colors = plot.figure.colors[name];
      const known = Object.entries(colors.traces).map(([path, values]) => [path, values.map((v) => v ?? undefined)]);
      Plotly.update(plot.element, Object.fromEntries(known), colors.layout);
      plot.painted = name;
    }
  }

  // One plot at a time, those that are seen first: the page can be scrolled in between.
  const waiting = new Set();
  let busy = false;
  const seen = ({ element }) => {
    const place = element.getBoundingClientRect();
    return place.bottom > 0 && place.top < innerHeight;
  };
  function work() {
    const next = [...waiting].find(seen) ?? [...waiting][0];
    busy = next !== undefined;
    if (!busy) return;
    waiting.delete(next);
    draw(next);
    setTimeout(work);
  }
  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const plot = plotOf.get(target);
        if (isIntersecting && plot.painted === null) waiting.add(plot);
        else waiting.delete(plot);
      }
      if (!busy && waiting.size > 0) {
        busy = true;
        setTimeout(work);
      }
    },
    { rootMargin: "100% 0px" },
  );

  root.dataset.drawn = "0";
  for (const plot of plots) {
    plot.element.style.minHeight = `${heightOf(plot)}px`; // what is below does not jump
    near.observe(plot.element);
  }
  window.perflabDrawAll = () => plots.forEach(draw);

  for (const button of document.querySelectorAll(".legend button[data-plot]")) {
    button.addEventListener("click", () => {
      const plot = plotOf.get(document.getElementById(button.dataset.plot));
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      const group = Number(button.dataset.group);
      if (on) plot.hidden.delete(group);
      else plot.hidden.add(group);
      if (plot.painted === null) return;
      const traces = plot.element.data.flatMap((trace, i) => (trace.meta.group === group ? [i] : []));
      Plotly.restyle(plot.element, { visible: on }, traces);
    });
  }
  document.getElementById("theme")?.addEventListener("change", (event) => {
    root.dataset.theme = event.target.value;
  });
  new MutationObserver(paint).observe(root, { attributeFilter: ["data-theme"] });
  dark.addEventListener("change", paint);
  addEventListener("resize", () => plots.forEach(fit));
  addEventListener("beforeprint", () => {
    printing = true;
    paint();
    plots.forEach(draw);
    plots.forEach(fit);
  });
  addEventListener("afterprint", () => {
    printing = false;
    paint();
    plots.forEach(fit);
  });
})();
