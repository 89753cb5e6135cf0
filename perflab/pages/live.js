// Asks for the parts of the page once a second while it is seen, and puts those that changed in place. Nothing moves by
// itself: the browser runs on the machine that is being measured.
(() => {
  "use strict";
  const LOST_WAIT_MS = 3000;
  const SLOW_MS = 4000; // after which the page explains the delay
  const root = document.documentElement;
  const by = (id) => document.getElementById(id);
  const number = new URLSearchParams(location.search).get("run") || "1";
  const shown = new Map(); // what the server wrote, by the ids of elements
  let tag = null, known = "", timer = 0, asking = false, lostAt = null;

  // By far the largest part: text and tables are there before it is read.
  const library = new Promise((loaded) => {
    const script = document.createElement("script");
    script.src = "/vega.js";
    script.addEventListener("load", loaded);
    document.head.append(script);
  });

  function put(fresh) {
    const figures = fresh.getElementById("figures");
    for (const part of [...fresh.body.children].filter((element) => element !== figures)) {
      const text = part.outerHTML;
      if (shown.get(part.id) === text) continue;
      shown.set(part.id, text);
      for (const place of part.querySelectorAll(".plot, #film-figure, #film-words")) place.replaceWith(by(place.id) ?? place); // as it was drawn
      by(part.id).replaceWith(part);
    }
    const drawn = JSON.parse(figures.textContent);
    library.then(() => perflabDraw(drawn));
    document.title = fresh.title;
    Object.assign(root.dataset, fresh.body.dataset);
  }

  // Goes on between two states.
  function clock() {
    const place = by("elapsed"), { since, of } = place?.dataset ?? {};
    if (since) place.textContent = `${Math.min(of, Math.max(0, Date.now() / 1000 - since)).toFixed(0)} of ${Number(of)} s`;
  }

  // ---- films: of the trial that was chosen, the newest one again and again

  let wanted = null, film = null, filmed = null;
  async function watch() {
    const figure = by("film-figure");
    if (!figure) return;
    for (const button of document.querySelectorAll("[data-film]")) button.setAttribute("aria-pressed", String(button.dataset.film === wanted));
    figure.hidden = wanted === null;
    if (wanted === null || document.hidden) return;
    const trial = wanted, answer = await fetch(`/film.json?run=${encodeURIComponent(number)}&trial=${trial}`, { cache: "no-store" });
    if (answer.status !== 200 || trial !== wanted) return;
    const found = await answer.json();
    by("film-words").textContent = found.film === null ? "Nothing has been recorded of it yet that can be shown." : `Trial ${found.trial}`;
    figure.hidden = found.film === null;
    if (found.film === null) return;
    if (filmed === found.trial) film.update(found.film);
    else [film, filmed] = [perflabFilm(figure.querySelector(".film-player"), found.scene, found.film, found.about), found.trial];
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-film]");
    if (!button) return;
    wanted = button.dataset.film === "none" ? null : button.dataset.film;
    filmed = null;
    watch();
  });

  // The server gives way to everything else on its machine: an answer may take long where all CPUs are loaded.
  async function ask() {
    clearTimeout(timer);
    if (document.hidden || asking) return;
    asking = true;
    let wait = LOST_WAIT_MS;
    const slow = setTimeout(() => (by("slow").hidden = false), SLOW_MS);
    try {
      const headers = tag === null ? {} : { "If-None-Match": tag };
      const answer = await fetch(`/parts.html?run=${encodeURIComponent(number)}&known=${known}`, { headers, cache: "no-store" });
      if (answer.status === 200) {
        put(new DOMParser().parseFromString(await answer.text(), "text/html"));
        [tag, known, lostAt] = [answer.headers.get("ETag"), root.dataset.run, null];
      } else if (answer.status !== 304) throw new Error(await answer.text());
      wait = Number(root.dataset.wait);
      if (wanted === "") await watch();
      clock();
    } catch (error) {
      lostAt ??= new Date();
      [tag, known] = [null, ""];
      shown.clear();
      by("state-words").textContent = `no answer from the server since ${lostAt.toLocaleTimeString()}: it has ended, or this page is of another run`;
      by("left").textContent = "";
    } finally {
      asking = false;
      clearTimeout(slow);
      by("slow").hidden = true;
    }
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(ask, wait);
  }

  document.addEventListener("visibilitychange", ask);
  for (const link of document.querySelectorAll("#runs a")) {
    if (new URL(link.href).searchParams.get("run") === number) link.setAttribute("aria-current", "page");
  }
  ask();
})();
