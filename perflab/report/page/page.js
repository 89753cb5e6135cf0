// Draws the figures, follows the theme, and lets the legends hide results.
(() => {
  "use strict";
  const PAPER_WIDTH_PX = 680;
  const NARROW_PX = 600;
  const page = JSON.parse(document.getElementById("figures").textContent);
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const coarse = matchMedia("(pointer: coarse)");
  const plots = page.figures.map((figure) => ({ figure, element: document.getElementById(figure.id) }));

  const theme = () => (root.dataset.theme === "auto" ? (dark.matches ? "dark" : "light") : root.dataset.theme);

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

  function fit(element) {
    const width = element.clientWidth;
    if (width > 0 && width !== element.layout.width) Plotly.relayout(element, { width });
  }

  function paint(name) {
    for (const { figure, element } of plots) {
      const colors = figure.colors[name];
      Plotly.update(element, colors.traces, colors.layout);
    }
  }

  async function draw() {
    for (const { figure, element } of plots) {
      const layout = figure.plot.layout;
      if (coarse.matches) {
        layout.dragmode = false; // a finger on a plot scrolls the page
        layout.margin.t = 10;
      }
      layout.width = element.clientWidth;
      if (element.clientWidth < NARROW_PX) layout.height = figure.narrow_height;
      await Plotly.newPlot(element, figure.plot.data, layout, {
        displaylogo: false,
        displayModeBar: coarse.matches ? false : "hover",
        showSendToCloud: false,
        plotlyServerURL: "",
        modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
        toImageButtonOptions: { filename: figure.id, scale: 2 },
      });
      new ResizeObserver(() => fit(element)).observe(element);
      element.on("plotly_relayout", (change) => followZoom(element, change));
    }
    paint(theme());
    root.dataset.drawn = String(plots.length);
  }

  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      const element = document.getElementById(button.dataset.plot);
      const group = Number(button.dataset.group);
      const traces = element.data.flatMap((trace, i) => (trace.meta.group === group ? [i] : []));
      Plotly.restyle(element, { visible: on }, traces);
    });
  }
  document.getElementById("theme").addEventListener("change", (event) => {
    root.dataset.theme = event.target.value;
    paint(theme());
  });
  dark.addEventListener("change", () => paint(theme()));
  addEventListener("resize", () => plots.forEach(({ element }) => fit(element)));
  // Paper is light and has a width of its own.
  addEventListener("beforeprint", () => {
    paint("light");
    for (const { element } of plots) Plotly.relayout(element, { width: PAPER_WIDTH_PX });
  });
  addEventListener("afterprint", () => {
    paint(theme());
    for (const { element } of plots) fit(element);
  });
  draw();
})();
