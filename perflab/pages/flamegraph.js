// Draws the tree of stacks, zooms, searches, turns it round. `document` is what has its elements: a page, or a part of one.
const drawFlameGraph = (document) => {
  "use strict";
  const ROW_PX = matchMedia("(pointer: coarse)").matches ? 24 : 19;
  const LEAST_PX = 0.6;  // what is narrower is left out, with all that is above it
  const NAMED_PX = 28;
  const PAPER_PX = 1000;
  const WAIT_MS = 120;
  const data = JSON.parse(document.getElementById("data").textContent);
  const find = (id) => document.getElementById(id);
  const [graph, picture, layer, told, search, found] = ["graph", "picture", "frames", "told", "search", "found"].map(find);

  // A tree as columns, each node before those below it: `ends` is the node after the last one below, `left` where its
  // time begins when siblings stand side by side.
  function columns(nodes, depths, own) {
    const n = nodes.length, totals = Float64Array.from(own), ends = new Int32Array(n), parents = new Int32Array(n);
    const left = new Float64Array(n), way = [];
    for (let i = 0; i < n; i++) {
      for (let d = way.length; d > depths[i]; d--) ends[way.pop()] = i;
      parents[i] = way.length ? way[way.length - 1] : -1;
      way.push(i);
    }
    for (const i of way) ends[i] = n;
    for (let i = n - 1; i > 0; i--) totals[parents[i]] += totals[i];
    const next = new Float64Array(n);
    for (let i = 1; i < n; i++) {
      const p = parents[i];
      left[i] = next[p] || left[p];
      next[p] = left[i] + totals[i];
    }
    return { nodes, depths, own, totals, ends, parents, left };
  }

  // From a tree of maps; the heavier of siblings first.
  function flatten(root) {
    const nodes = [], depths = [], own = [], waiting = [[-1, 0, root]];
    while (waiting.length) {
      const [number, depth, node] = waiting.pop();
      nodes.push(number); depths.push(depth); own.push(node.own);
      const below = [...node.below].sort((a, b) => a[1].total - b[1].total);
      for (const [child, at] of below) waiting.push([child, depth + 1, at]);
    }
    return columns(nodes, depths, own);
  }

  const node = () => ({ below: new Map(), own: 0, total: 0 });

  function step(from, number, weight) {
    let at = from.below.get(number);
    if (!at) from.below.set(number, (at = node()));
    at.total += weight;
    return at;
  }

  const plain = columns(data.nodes, data.depths, data.own);

  // The same stacks in another order: without their first frame, from the innermost frame on, or both.
  function rearranged(merged, callers) {
    const root = node(), way = [];
    for (let i = 1; i < plain.nodes.length; i++) {
      way.length = plain.depths[i] - 1;
      way.push(plain.nodes[i]);
      const weight = plain.own[i];
      if (!weight) continue;
      let at = root;
      root.total += weight;
      if (callers) {
        if (!merged) at = step(at, way[0], weight);
        for (let k = way.length - 1; k > 0; k--) at = step(at, way[k], weight);
      } else {
        for (let k = merged ? 1 : 0; k < way.length; k++) at = step(at, way[k], weight);
      }
      at.own += weight;
    }
    root.own = 0;
    return flatten(root);
  }

  const trees = new Map([["", plain]]);
  let merged = false, callers = false, upwards = false, family = 0, hits = null;
  let tree = plain, focus = 0, at = 0, shown = [];

  const percent = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(part / whole < 0.0995 ? 2 : 1)} %` : "–");

  function amount(weight) {
    const steps = data.unit === "ns" ? [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]
      : data.unit === "cycles" ? [[1e9, "G cycles"], [1e6, "M cycles"], [1, "cycles"]] : [[1, "samples"]];
    const [size, name] = steps.find(([s]) => weight >= s) || steps[steps.length - 1];
    const value = weight / size;
    return `${data.unit === "samples" ? value : Number(value.toPrecision(3)).toLocaleString("en")} ${name}`;
  }

  const nameOf = (i) => (tree.nodes[i] < 0 ? "all" : data.names[tree.nodes[i]]);
  const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

  function describe(i) {
    if (i < 0) { told.textContent = ""; return; }
    const number = tree.nodes[i], all = tree.totals[0], whole = tree.totals[i];
    const kind = number < 0 ? "" : data.families[data.family[number]], from = number < 0 ? "" : data.details[data.detail[number]];
    const zoomed = focus > 0 ? `, ${percent(whole, tree.totals[focus])} of what is shown` : "";
    const self = callers || !tree.own[i] ? "" : ` · itself ${amount(tree.own[i])}, ${percent(tree.own[i], all)}`;
    told.innerHTML = `<b>${escaped(nameOf(i))}</b><br>${amount(whole)}, ${percent(whole, all)}${zoomed}${self}`
      + `<br><span class="more">${escaped([kind, from].filter(Boolean).join(" · "))}</span>`;
  }

  // Template arguments as "<…>".
  function withoutArguments(name) {
    let text = "", open = 0;
    for (let k = 0; k < name.length; k++) {
      const letter = name[k];
      if (letter === "<" && !/operator<*$/.test(name.slice(Math.max(0, k - 10), k))) {
        if (open++ === 0 && k > 0) text += "<…>";
        else if (k === 0) { open = 0; text += letter; }
      } else if (letter === ">" && open > 0 && name[k - 1] !== "-") open--;
      else if (open === 0) text += letter;
    }
    return text;
  }

  // What of a name there is room for: a function's own name says more than its namespaces and template arguments.
  function label(name, width, letter) {
    const room = Math.floor((width - 6) / letter);
    if (name.length <= room) return name;
    if (room < 3) return "";
    let short = withoutArguments(name).replace(/\((anonymous namespace)\)::/g, "");
    for (let cut = short.indexOf("::"); cut >= 0 && short.length > room; cut = short.indexOf("::")) short = short.slice(cut + 2);
    return short.length <= room ? short : short.slice(0, room - 1) + "…";
  }

  let letter = 0;
  function letterWidth() {
    if (letter) return letter;
    layer.innerHTML = `<text>${"m".repeat(40)}</text>`;
    letter = layer.firstChild.getComputedTextLength() / 40 || 7.3;
    return letter;
  }

  function draw() {
    const width = graph.clientWidth || PAPER_PX, wide = letterWidth();
    const scale = tree.totals[focus] ? width / tree.totals[focus] : 0, base = tree.left[focus];
    const boxes = [];
    let deepest = tree.depths[focus];
    const above = [];
    for (let i = tree.parents[focus]; i >= 0; i = tree.parents[i]) above.unshift(i);
    for (const i of above) boxes.push([i, 0, width]);
    for (let i = focus, end = tree.ends[focus]; i < end;) {
      const size = tree.totals[i] * scale;
      if (size < LEAST_PX && i !== focus) { i = tree.ends[i]; continue; }
      boxes.push([i, (tree.left[i] - base) * scale, size]);
      deepest = Math.max(deepest, tree.depths[i]);
      i++;
    }
    const height = (deepest + 1) * ROW_PX;
    const rows = [];
    for (const [i, x, size] of boxes) {
      const number = tree.nodes[i], y = upwards ? height - (tree.depths[i] + 1) * ROW_PX : tree.depths[i] * ROW_PX;
      const kind = number < 0 ? 0 : data.family[number];
      const states = [tree.depths[i] < tree.depths[focus] ? "above" : "", i === at ? "at" : ""];
      if (hits) states.push(number >= 0 && hits[number] ? "hit" : "miss");
      if (family && kind !== family) states.push("miss");
      const text = size >= NAMED_PX ? label(nameOf(i), size, wide) : "";
      rows.push(`<g id="n${i}" class="${states.join(" ")}" role="treeitem" aria-level="${tree.depths[i] + 1}" aria-label="${escaped(nameOf(i))}, ${percent(tree.totals[i], tree.totals[0])}">`
        + `<rect class="f${kind}" x="${x.toFixed(2)}" y="${y}" width="${Math.max(size, LEAST_PX).toFixed(2)}" height="${ROW_PX - 1}" rx="2"/>`
        + (text ? `<text class="t${kind}" x="${(x + 4).toFixed(2)}" y="${y + (ROW_PX - 1) / 2}">${escaped(text)}</text>` : "") + "</g>");
    }
    layer.innerHTML = rows.join("");
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    shown = boxes.map(([i]) => i);
    find("out").disabled = focus === 0;
    graph.setAttribute("aria-activedescendant", `n${at}`);
  }

  function zoom(i) {
    focus = at = i;
    draw();
    describe(i);
  }

  function mark(i) {
    find(`n${at}`)?.classList.remove("at");
    at = i;
    const box = find(`n${i}`);
    box?.classList.add("at");
    box?.scrollIntoView({ block: "nearest" });
    graph.setAttribute("aria-activedescendant", `n${i}`);
    describe(i);
  }

  function arrange() {
    const key = `${merged ? "m" : ""}${callers ? "c" : ""}`;
    if (!trees.has(key)) trees.set(key, rearranged(merged, callers));
    tree = trees.get(key);
    zoom(0);
    look();
  }

  // The next frame of that row to one side, of those that are drawn.
  function beside(i, right) {
    const row = shown.filter((k) => tree.depths[k] === tree.depths[i]);
    return row[row.indexOf(i) + (right ? 1 : -1)] ?? i;
  }

  const drawn = new Set();
  function below(i) {
    drawn.clear();
    for (const k of shown) drawn.add(k);
    const child = i + 1;
    return child < tree.ends[i] && drawn.has(child) ? child : i;
  }

  graph.addEventListener("keydown", (event) => {
    const outwards = upwards ? "ArrowDown" : "ArrowUp", inwards = upwards ? "ArrowUp" : "ArrowDown";
    const moves = {
      [outwards]: () => mark(Math.max(0, tree.parents[at])),
      [inwards]: () => mark(below(at)),
      ArrowLeft: () => mark(beside(at, false)),
      ArrowRight: () => mark(beside(at, true)),
      Home: () => mark(0),
      Enter: () => zoom(at),
      " ": () => zoom(at),
      Escape: () => zoom(Math.max(0, tree.parents[focus])),
      Backspace: () => zoom(Math.max(0, tree.parents[focus])),
    };
    if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    moves[event.key]();
  });

  const boxOf = (event) => Number(event.target.closest?.("g[id^=n]")?.id.slice(1) ?? -1);
  layer.addEventListener("click", (event) => { const i = boxOf(event); if (i >= 0) zoom(i); });
  layer.addEventListener("pointerover", (event) => { const i = boxOf(event); if (i >= 0) describe(i); });
  graph.addEventListener("pointerleave", () => describe(at));

  function pressed(id, change) {
    find(id).addEventListener("click", () => {
      find(id).setAttribute("aria-pressed", String(change()));
      arrange();
    });
  }
  pressed("callers", () => (callers = !callers));
  pressed("merge", () => (merged = !merged));
  find("turn").addEventListener("click", () => {
    upwards = !upwards;
    find("turn").setAttribute("aria-pressed", String(upwards));
    draw();
  });
  find("out").addEventListener("click", () => zoom(Math.max(0, tree.parents[focus])));

  function matcher(text) {
    const written = /^\/(.+)\/$/.exec(text);
    if (written) {
      try { const pattern = new RegExp(written[1], "i"); return (name) => pattern.test(name); } catch { return null; }
    }
    const word = text.toLowerCase();
    return (name) => name.toLowerCase().includes(word);
  }

  // The share of all time in which a frame that matches was on the stack; one stack counts once.
  function look() {
    const text = search.value.trim();
    hits = null;
    found.textContent = "";
    if (text) {
      const matches = matcher(text);
      if (!matches) { found.textContent = "no regular expression"; draw(); return; }
      hits = data.names.map(matches);
      let sum = 0;
      for (let i = 0; i < tree.nodes.length;) {
        if (tree.nodes[i] >= 0 && hits[tree.nodes[i]]) { sum += tree.totals[i]; i = tree.ends[i]; } else i++;
      }
      const names = hits.filter(Boolean).length;
      found.textContent = `${percent(sum, tree.totals[0])} in ${names} ${names === 1 ? "name" : "names"}`;
    }
    draw();
  }

  let timer = 0;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, WAIT_MS); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      search.focus();
    }
  });

  function legend() {
    const sums = new Float64Array(data.families.length);
    for (let i = 1; i < plain.nodes.length; i++) sums[data.family[plain.nodes[i]]] += plain.own[i];
    const all = plain.totals[0], used = new Set(plain.nodes.map((k) => (k < 0 ? 0 : data.family[k])));
    find("legend").innerHTML = data.families.map((title, k) => (k && used.has(k)
      ? `<button type="button" aria-pressed="false" data-family="${k}"><svg aria-hidden="true"><rect class="f${k}" width="28" height="16"/></svg>`
        + `<span>${escaped(title)} <span class="share">${percent(sums[k], all)}</span></span></button>` : "")).join("");
    for (const button of find("legend").querySelectorAll("button")) {
      button.addEventListener("click", () => {
        family = family === Number(button.dataset.family) ? 0 : Number(button.dataset.family);
        for (const other of find("legend").querySelectorAll("button")) other.setAttribute("aria-pressed", String(Number(other.dataset.family) === family));
        draw();
      });
    }
  }

  let width = 0;
  new ResizeObserver(() => { if (graph.clientWidth !== width) { width = graph.clientWidth; draw(); } }).observe(graph);
  const groups = plain.depths.reduce((n, d) => n + (d === 1 ? 1 : 0), 0);
  find("merge").disabled = groups < 2;
  legend();
  draw();
  describe(0);
  document.documentElement.dataset.drawn = String(shown.length);
};
