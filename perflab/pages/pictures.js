// Draws the figures when they come near what is seen, follows the theme, and lets the legends hide results.
(() => {
  "use strict";
  const PAPER_WIDTH_PX = 680;
  const NARROW_PX = 600;
  const AROUND_PX = 50; // an axis with its title
  const NEAR_PX = 20;
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const coarse = matchMedia("(pointer: coarse)");
  const plots = new Map(); // by the ids of their elements
  let themes = {};
  let printing = false;

  const theme = () => {
    if (printing) return "light"; // paper is
    return root.dataset.theme === "light" || root.dataset.theme === "dark" ? root.dataset.theme : dark.matches ? "dark" : "light";
  };
  const tones = () => themes[theme()];
  const widthOf = ({ element }) => (printing ? PAPER_WIDTH_PX : element.clientWidth);
  const heightOf = ({ figure, element }) =>
    printing || element.clientWidth < NARROW_PX ? figure.narrow_height : figure.spec.height;

  // Everything of a figure but its values, which may change while it is shown.
  const shapeOf = ({ spec, ...rest }) =>
    JSON.stringify({ ...rest, spec: { ...spec, data: spec.data.map(({ columns, ...table }) => table) } });

  // Draws these figures where the page has a place for them, and what has changed of those that are drawn.
  function take(page) {
    themes = page.themes;
    for (const [id, { element, view }] of plots) {
      if (element.isConnected) continue;
      view?.finalize();
      plots.delete(id);
    }
    for (const figure of page.figures) {
      const element = document.getElementById(figure.id), before = plots.get(figure.id);
      if (element === null) continue;
      if (before !== undefined && shapeOf(before.figure) === shapeOf(figure)) {
        before.figure = figure;
        renew(before);
        continue;
      }
      before?.view?.finalize();
      const plot = { figure, element, view: null, begun: null, hidden: before?.hidden ?? new Set() };
      plots.set(figure.id, plot);
      if (before === undefined) {
        element.style.minHeight = `${heightOf(plot) + AROUND_PX}px`; // what is below does not jump
        sized.observe(element);
      }
      near.unobserve(element); // which then says anew whether it is near
      near.observe(element);
    }
    for (const button of document.querySelectorAll(".legend button[data-plot]")) {
      const hidden = plots.get(button.dataset.plot)?.hidden.has(Number(button.dataset.group));
      button.setAttribute("aria-pressed", String(!hidden));
    }
  }

  function child(parent, kind, name) {
    const made = document.createElement(kind);
    made.className = name;
    parent.append(made);
    return made;
  }

  // A column that is null is so in every row.
  function rowsOf({ length, ...columns }) {
    const entries = Object.entries(columns);
    return Array.from({ length }, (_, i) => Object.fromEntries(entries.map(([name, all]) => [name, all === null ? null : all[i]])));
  }

  function draw(plot) {
    return (plot.begun ??= begin(plot));
  }

  async function begin(plot) {
    const { figure, element } = plot;
    near.unobserve(element);
    const spec = { ...figure.spec, width: widthOf(plot), height: heightOf(plot), background: tones().background };
    spec.data = spec.data.map(({ columns, ...rest }) => (columns ? { ...rest, values: rowsOf(columns) } : rest));
    const first = { theme: tones(), hidden: [...plot.hidden] };
    spec.signals = spec.signals.map((signal) => (signal.name in first ? { ...signal, value: first[signal.name] } : signal));
    // An image, and beside it what can be pressed.
    const canvas = document.createElement("div"), drawing = child(canvas, "div", "drawing");
    drawing.setAttribute("role", "img");
    // The page allows no code made of text: expressions are interpreted.
    const { view } = await vegaEmbed(drawing, spec, {
      mode: "vega", renderer: "svg", ast: true, actions: false, defaultStyle: false, tooltip: false, hover: false,
    });
    if (plots.get(figure.id) !== plot) return view.finalize(); // it has another shape by now
    plot.view = view;
    drawing.querySelector("svg").setAttribute("aria-hidden", "true");
    drawing.setAttribute("aria-label", figure.title);
    element.removeAttribute("role");
    element.removeAttribute("aria-label");
    element.replaceChildren(canvas);
    element.style.minHeight = "";
    if (!coarse.matches) follow(plot, canvas); // a finger on a plot scrolls the page
    root.dataset.drawn = String([...plots.values()].filter((one) => one.view !== null).length);
    if (plot.figure !== figure) renew(plot);
    paint(); // the theme may have changed meanwhile
    fit(plot);
  }

  function renew({ view, figure }) {
    if (view === null) return;
    for (const { name, columns } of figure.spec.data) if (columns) view.data(name, rowsOf(columns));
    view.run();
  }

  function fit(plot) {
    const { view } = plot;
    const width = widthOf(plot), height = heightOf(plot);
    if (view === null || width === 0 || (plot.width === width && view.height() === height)) return;
    plot.width = width;
    view.width(width).height(height).run();
  }

  function paint() {
    for (const { view } of plots.values()) {
      if (view === null || view.signal("theme").background === tones().background) continue;
      view.signal("theme", tones()).background(tones().background).run();
    }
  }

  // ---- what is pointed at, zooming and moving

  function follow({ figure, view }, element) {
    const said = child(element, "div", "said"), box = child(element, "div", "box"), tools = child(element, "div", "tools");
    said.hidden = box.hidden = true;
    const axes = figure.rows ? ["x"] : ["x", "y"]; // those of which a part can be shown
    const size = (axis) => view.signal(axis === "x" ? "width" : "height");
    const whole = (axis) => figure.spec.signals.find(({ name }) => name === `${axis}_domain`).value;
    let from = null; // where a box begins
    let held = null; // values of the axes by which what is seen is moved

    const place = (event) => {
      const seen = element.querySelector("svg").getBoundingClientRect();
      return [event.clientX - seen.left - view.origin()[0], event.clientY - seen.top - view.origin()[1]];
    };
    const within = ([x, y]) => x >= 0 && y >= 0 && x <= view.signal("width") && y <= view.signal("height");

    // The nearest point that says something, or else the area below the pointer.
    function at([x, y]) {
      const toX = view.scale("x"), toY = view.scale("y"), style = view.signal("style");
      let found = null, least = NEAR_PX ** 2;
      for (const point of view.data("seen")) {
        const text = point.text ?? (style[point.s].opacity < 1 ? style[point.s].name : null);
        if (text === null || point.x === null || point.y === null) continue;
        const far = (toX(point.x) - x) ** 2 + (toY(point.y) - y) ** 2;
        if (far < least) [found, least] = [text, far];
      }
      const covers = (span) => toX(span.x) <= x && x <= toX(span.x2) && toY(span.y) <= y && y <= toY(span.y2);
      return found ?? view.data("seen_spans").findLast((span) => span.text !== null && covers(span))?.text ?? null;
    }

    // Shows what lies between two places of an axis.
    function show(axis, places) {
      const scale = view.scale(axis);
      view.signal(`${axis}_domain`, places.map((place) => scale.invert(place)).sort((a, b) => a - b));
    }
    function zoom(...corners) {
      axes.forEach((axis, i) => show(axis, corners.map((corner) => corner[i])));
      view.run();
    }
    function showAll() {
      for (const axis of axes) view.signal(`${axis}_domain`, whole(axis));
      view.run();
    }
    // A part of what is seen around its middle, more than 1 of it to see more.
    function closer(part) {
      const corner = (sign) => axes.map((axis) => (size(axis) * (1 + sign * part)) / 2);
      zoom(corner(-1), corner(1));
    }
    // Shows what lies so many px to the right and below, as far as the whole goes.
    function move(...by) {
      axes.forEach((axis, i) => {
        const [first, last] = whole(axis).map((end) => view.scale(axis)(end)).sort((a, b) => a - b);
        const far = Math.max(Math.min(by[i], Math.max(last - size(axis), 0)), Math.min(first, 0));
        if (far !== 0) show(axis, [far, far + size(axis)]);
      });
      view.run();
    }
    async function save() {
      const link = document.createElement("a");
      link.href = await view.toImageURL("png", 2);
      link.download = `${figure.id}.png`;
      link.click();
    }
    for (const [name, title, action] of [
      ["+", "Zoom in (drag a box); drag with Shift to move", () => closer(0.5)], ["−", "Zoom out", () => closer(2)],
      ["Whole", "Show all (double click)", showAll], ["PNG", "Save as a picture", save],
    ]) {
      const button = child(tools, "button", "");
      Object.assign(button, { type: "button", textContent: name, title });
      button.addEventListener("click", action);
    }

    element.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      const [left, top] = view.origin();
      if (held !== null) {
        move(...axes.map((axis, i) => view.scale(axis)(held[i]) - [x, y][i]));
        return;
      }
      if (from !== null) {
        const ends = [[from[0], x], [from[1], y]].map(([a, b]) => [Math.min(a, b), Math.abs(b - a)]);
        if (figure.rows) ends[1] = [0, view.signal("height")];
        box.hidden = false;
        Object.assign(box.style, { left: `${left + ends[0][0]}px`, top: `${top + ends[1][0]}px`, width: `${ends[0][1]}px`, height: `${ends[1][1]}px` });
        return;
      }
      const text = within([x, y]) ? at([x, y]) : null;
      said.hidden = text === null;
      if (text === null) return;
      said.textContent = text.replaceAll("<br>", "\n");
      const side = x > view.signal("width") / 2 ? { right: `${element.clientWidth - left - x + 12}px`, left: "" } : { left: `${left + x + 12}px`, right: "" };
      Object.assign(said.style, side, { top: `${Math.max(0, top + y - 12)}px` });
    });
    element.addEventListener("pointerleave", () => (said.hidden = true));
    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !within(place(event)) || event.target.closest(".tools")) return;
      if (event.shiftKey) held = axes.map((axis, i) => view.scale(axis).invert(place(event)[i]));
      else from = place(event);
      said.hidden = true;
      element.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    element.addEventListener("pointerup", (event) => {
      held = null;
      if (from === null) return;
      const to = place(event), begun = from;
      from = null;
      box.hidden = true;
      const wide = Math.abs(to[0] - begun[0]), high = figure.rows ? Infinity : Math.abs(to[1] - begun[1]);
      if (wide < 8 || high < 8) return;
      zoom(begun, to);
    });
    element.addEventListener("dblclick", (event) => within(place(event)) && showAll());
    // Two fingers to the side; up and down they scroll the page.
    element.addEventListener("wheel", (event) => {
      if (Math.abs(event.deltaX) <= Math.abs(event.deltaY) || view.signal("x_whole") || !within(place(event))) return;
      event.preventDefault();
      said.hidden = true;
      move(event.deltaX, 0);
    }, { passive: false });
  }

  // ---- one plot at a time, those that are seen first: the page can be scrolled in between

  const waiting = new Set();
  let busy = false;
  const seen = ({ element }) => {
    const place = element.getBoundingClientRect();
    return place.bottom > 0 && place.top < innerHeight;
  };
  async function work() {
    const next = [...waiting].find(seen) ?? [...waiting][0];
    busy = next !== undefined;
    if (!busy) return;
    waiting.delete(next);
    await draw(next);
    setTimeout(work);
  }
  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const plot = plots.get(target.id);
        if (isIntersecting && plot.begun === null) waiting.add(plot);
        else waiting.delete(plot);
      }
      if (!busy && waiting.size > 0) {
        busy = true;
        setTimeout(work);
      }
    },
    { rootMargin: "100% 0px" },
  );

  const sized = new ResizeObserver((entries) => entries.forEach(({ target }) => plots.has(target.id) && fit(plots.get(target.id))));

  root.dataset.drawn = "0";
  window.perflabDraw = take;
  window.perflabDrawAll = () => Promise.all([...plots.values()].map(draw));
  const page = document.getElementById("figures");
  if (page !== null) take(JSON.parse(perflabUnpack(page.textContent)));

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".legend button[data-plot]");
    if (!button) return;
    const { hidden, view } = plots.get(button.dataset.plot), group = Number(button.dataset.group);
    if (!hidden.delete(group)) hidden.add(group);
    button.setAttribute("aria-pressed", String(!hidden.has(group)));
    view?.signal("hidden", [...hidden]).run();
  });
  document.getElementById("theme")?.addEventListener("change", (event) => {
    root.dataset.theme = event.target.value;
  });
  new MutationObserver(paint).observe(root, { attributeFilter: ["data-theme"] });
  dark.addEventListener("change", paint);
  addEventListener("resize", () => plots.forEach((plot) => fit(plot)));
  for (const kind of ["beforeprint", "afterprint"]) {
    addEventListener(kind, () => {
      printing = kind === "beforeprint";
      paint();
      if (printing) perflabDrawAll();
      plots.forEach((plot) => fit(plot));
    });
  }
})();
