// Sorts and filters tables, copies text, draws flame graphs when they are opened, has the plots drawn when all else is
// there, follows the reader in the contents.
(() => {
  "use strict";
  const NARROW_PX = 900;
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // ---- tables

  // What a cell is sorted by; null is not known, and always last.
  function keyOf(row, place, numeric) {
    const by = row.cells[place].dataset.by;
    if (by === undefined) return null;
    return numeric ? Number(by) : by;
  }

  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  function sort(head) {
    const table = head.closest("table"), body = table.tBodies[0], place = head.cellIndex;
    const numeric = head.dataset.kind === "number";
    const up = head.getAttribute("aria-sort") !== "ascending";
    const rows = [...body.rows].map((row) => [keyOf(row, place, numeric), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      const order = numeric ? a - b : collator.compare(a, b);
      return up ? order : -order;
    });
    for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...rows.map(([, row]) => row));
    fold(table);
  }

  // Which rows of a long table are there before the rest is asked for.
  function fold(table) {
    const holder = table.closest(".long");
    if (!holder) return;
    const first = Number(holder.dataset.first);
    [...table.tBodies[0].rows].forEach((row, i) => row.classList.toggle("rest", i >= first));
  }

  for (const table of all("table.sorts")) {
    fold(table);
    for (const button of all("thead button", table)) button.addEventListener("click", () => sort(button.parentElement));
  }

  for (const holder of all(".table.long")) {
    const rows = [...holder.querySelector("tbody").rows];
    const filter = holder.querySelector(".filter"), count = holder.querySelector(".count");
    const button = holder.querySelector(".all");
    filter?.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase().replace(/\u00a0/g, " ");
        const fits = words.every((word) => text.includes(word));
        row.classList.toggle("out", !fits);
        shown += fits;
      }
      holder.classList.toggle("filtered", words.length > 0);
      count.textContent = words.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
      button.hidden = words.length > 0;
    });
    button.addEventListener("click", () => {
      const folded = holder.classList.toggle("folded");
      button.setAttribute("aria-expanded", String(!folded));
      button.textContent = folded ? `Show all ${rows.length} ${holder.dataset.rows ?? "rows"}` : "Show fewer";
    });
  }

  // ---- text to copy

  for (const button of all(".copy, .copy-markdown")) {
    const pre = button.parentElement.querySelector("pre");
    const words = button.textContent;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent);
        button.textContent = "Copied";
      } catch { // a page from a file may not have the clipboard: then it is marked, for Ctrl-C
        pre.hidden = false;
        getSelection().selectAllChildren(pre);
        button.textContent = document.execCommand("copy") ? "Copied" : "Marked";
      }
      setTimeout(() => (button.textContent = words), 2000);
    });
  }

  // A link may lead into what is folded.
  function unfold() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = [];
    for (let at = target?.closest("details"); at; at = at.parentElement.closest("details")) folded.push(at);
    if (folded.every((details) => details.open)) return;
    for (const details of folded) details.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  unfold();

  // ---- flame graphs

  // Each in a tree of its own, where the script finds what it needs by its id.
  function drawFlame(details) {
    const host = details.querySelector(".graph");
    if (host.shadowRoot) return;
    const shadow = host.attachShadow({ mode: "open" });
    for (const source of [document.getElementById("flame-style"), details.querySelector("template")]) {
      shadow.append(source.content.cloneNode(true));
    }
    drawFlameGraph({
      getElementById: (id) => shadow.getElementById(id),
      addEventListener: (kind, listener) => shadow.addEventListener(kind, listener),
      get activeElement() { return shadow.activeElement; },
      documentElement: host,
    });
  }
  for (const details of all("details.flame")) {
    details.addEventListener("toggle", () => details.open && drawFlame(details));
  }

  // ---- plots

  // What draws them is by far the largest part of the page: text and tables are there, and work, before it is read.
  let loaded = false;
  function loadPlots() {
    if (loaded) return;
    loaded = true;
    window.perflabPictures?.(); // there are some
  }

  // ---- theme, contents, paper

  document.getElementById("theme")?.addEventListener("change", (event) => (root.dataset.theme = event.target.value));

  const contents = document.querySelector(".contents");
  const narrow = matchMedia(`(max-width: ${NARROW_PX}px)`);
  const settle = () => (contents.open = !narrow.matches);
  narrow.addEventListener("change", settle);
  settle();
  contents.addEventListener("click", (event) => {
    if (event.target.closest("a") && narrow.matches) contents.open = false;
  });

  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  const sections = all("main > section");
  function follow() {
    const line = innerHeight / 3;
    let current = sections[0];
    for (const section of sections) if (section.getBoundingClientRect().top <= line) current = section;
    if (scrollY + innerHeight >= root.scrollHeight - 2) current = sections[sections.length - 1];
    for (const [id, link] of links) {
      if (current && id === current.id) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; follow(); });
  }, { passive: true });
  follow();

  let opened = [];
  addEventListener("beforeprint", () => {
    if (!loaded) {
      loadPlots();
      dispatchEvent(new Event("beforeprint")); // again, for listeners that were just added
      return;
    }
    opened = all("main details:not([open]):not(.screen)");
    for (const details of opened) {
      details.open = true;
      if (details.matches(".flame")) drawFlame(details);
    }
  });
  addEventListener("afterprint", () => opened.forEach((details) => (details.open = false)));
  root.dataset.ready = "true";
  requestAnimationFrame(() => setTimeout(loadPlots));
})();
