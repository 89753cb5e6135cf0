// Asks for the state once a second while the page is seen, and draws what has changed. Nothing moves by itself:
// the browser runs on the machine that is being measured.
(() => {
  "use strict";
  const POLL_MS = { running: 1000, elsewhere: 2000, waiting: 1000, damaged: 3000, crashed: 5000 };
  const ENDED_POLL_MS = 10000; // somebody may resume the run
  const LOST_POLL_MS = 3000;
  const SLOW_MS = 4000; // from which on a reader is told why an answer takes so long
  const MAX_ROWS = 100; // of the table of trials
  const CHART_HEIGHT = 190;
  const SVG = "http://www.w3.org/2000/svg";

  // What became of a trial, as a sign that needs no colour: whether it is filled, and its form.
  const SIGNS = {
    success: { path: "M-6,-6H6V6H-6Z", full: true, words: "success" },
    failed: { path: "M-6,-6H6V6H-6ZM-4,-4L4,4M-4,4L4,-4", words: "failed" },
    invalid: { path: "M-6,-6H6V6H-6ZM-4,4L4,-4", words: "invalid" },
    harness_error: { path: "M-6,-6H6V6H-6ZM0,-4V1M0,3V4.5", words: "harness error" },
    interrupted: { path: "M-6,-6H6V6H-6ZM-3,0H3", words: "interrupted" },
    running: { path: "M-5,-6L6,0L-5,6Z", words: "running", full: true },
    planned: { path: "M-1.5,-1.5H1.5V1.5H-1.5Z", words: "to come" },
  };
  const STATES = {
    running: { path: "M-5,-6L6,0L-5,6Z", full: true },
    elsewhere: { path: "M-5,-6L6,0L-5,6Z" },
    waiting: { path: "M-5,-6V6M5,-6V6" },
    finished: { path: "M-7,0L-2,5L7,-5" },
    ended_early: { path: "M-6,-6H6V6H-6Z" },
    crashed: { path: "M-6,-6L6,6M-6,6L6,-6" },
    damaged: { path: "M-6,-6L6,6M-6,6L6,-6" },
  };

  const root = document.documentElement;
  const by = (id) => document.getElementById(id);
  const number = new URLSearchParams(location.search).get("run") || "1";
  let state = null, run = null, timer = 0, asking = false, failedAt = null;

  // -- words ------------------------------------------------------------------------------------------------------

  const digits = (x) => x.toFixed(Math.abs(x) < 9.995 ? 2 : Math.abs(x) < 99.95 ? 1 : 0);

  function time(ns) {
    if (ns === null || ns === undefined) return "–";
    if (Math.abs(ns) < 999.5) return `${ns.toFixed(0)} ns`;
    for (const [unit, size] of [["µs", 1e3], ["ms", 1e6]]) {
      if (Math.abs(ns) < 999.5 * size) return `${digits(ns / size)} ${unit}`;
    }
    return `${digits(ns / 1e9)} s`;
  }

  // Of a tick, which is a round number.
  const roundTime = (ns) => time(ns).replace(/\.0+ /, " ").replace(/(\.\d*?)0+ /, "$1 ");

  const count = (n) => (n === null || n === undefined ? "–" : String(n).replace(/\B(?=(\d{3})+$)/g, "\u00a0"));
  const percent = (share) => `${(100 * share).toFixed(share > 0.0995 && share < 0.995 ? 0 : share === 0 || share === 1 ? 0 : 1)} %`;
  const seconds = (s) => (s < 60 ? `${s.toFixed(0)} s` : `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`);
  const plain = (x) => String(Number(x.toPrecision(4)));

  // -- elements ---------------------------------------------------------------------------------------------------

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function shape(name, attributes = {}, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // Text is only touched where it changes: a browser lays out nothing for what stays.
  function say(place, text) {
    if (place.textContent !== text) place.textContent = text;
  }

  const tone = (group) => `var(--group${group % TONES})`;

  function markShape(group, filled, attributes = {}) {
    const color = tone(group);
    const fill = filled ? { fill: color } : { fill: "var(--background)", stroke: color, "stroke-width": 1.5 };
    return shape("path", { d: MARKS[group % MARKS.length], ...fill, ...attributes });
  }

  function sign(outcome, title = "") {
    const { path, full } = SIGNS[outcome];
    const drawn = shape("path", {
      d: path, fill: full ? "currentColor" : "none", stroke: "currentColor", "stroke-width": 1.3,
    });
    const svg = shape("svg", { viewBox: "-8 -8 16 16" }, drawn);
    if (title) {
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", title);
      svg.prepend(shape("title", {}, title));
    } else svg.setAttribute("aria-hidden", "true");
    return svg;
  }

  const outcomeOf = (row) => (row.interrupted ? "interrupted" : row.outcome === null ? "planned" : row.outcome);
  const nameOf = (row) => (row.result === null ? "" : run.results[row.result].label);

  // A stroke and a mark as they are in a chart.
  function key(words, { group, stroke, filled, dash, marked = true, cross }) {
    const svg = shape("svg", { class: "mark", viewBox: "-18 -7 36 14", "aria-hidden": "true" });
    const color = group === undefined ? "var(--faint)" : tone(group);
    if (stroke) svg.append(shape("path", { d: "M-17,0H17", stroke: color, "stroke-width": 2, ...(dash ? { "stroke-dasharray": dash } : {}) }));
    if (cross) svg.append(shape("path", { d: "M-4,-4L4,4M-4,4L4,-4", stroke: color, "stroke-width": 1.6 }));
    else if (marked && group !== undefined) svg.append(markShape(group, filled));
    else if (marked) {
      svg.append(shape("circle", { r: 4, stroke: color, "stroke-width": 1.5, fill: filled ? color : "var(--background)" }));
    }
    return element("span", {}, svg, element("span", {}, words));
  }

  const named = (words, group) => {
    const svg = shape("svg", { viewBox: "-8 -8 16 16", "aria-hidden": "true" }, markShape(group, true));
    return element("span", { class: "sign" }, svg, element("span", {}, words));
  };

  // -- charts -----------------------------------------------------------------------------------------------------

  function linearTicks(low, high, most) {
    const rough = Math.max((high - low) / most, 1e-12);
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((s) => s * size).find((s) => s >= rough * 0.999);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(k * step);
    return ticks;
  }

  function logTicks(low, high) {
    const ticks = [];
    const decades = Math.log10(high / low);
    if (decades < 0.7) return linearTicks(low, high, 4).filter((t) => t > 0);
    for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) {
      for (const s of decades > 4 ? [1] : decades > 2 ? [1, 3] : [1, 2, 5]) {
        if (s * 10 ** e >= low * 0.999 && s * 10 ** e <= high * 1.001) ticks.push(s * 10 ** e);
      }
    }
    return ticks;
  }

  // series: {points: [[x, y, title?, low?, high?]], group, line, dash, marks: "all" | "last" | "none", filled, cross}
  function chart(place, { series, x, y, describe }) {
    const width = place.clientWidth, height = CHART_HEIGHT;
    const points = series.flatMap((s) => s.points).filter((p) => p[1] !== null);
    if (!width || !points.length) {
      place.replaceChildren();
      return false;
    }
    const values = points.flatMap((p) => [p[1], p[3] ?? p[1], p[4] ?? p[1]]);
    const range = (given, all, log) => {
      let low = given.low ?? Math.min(...all), high = given.high ?? Math.max(...all);
      if (log) return [Math.max(low, 1e-9) / 1.25, Math.max(high, 1e-9) * 1.25];
      if (low === high) [low, high] = [low - 1, high + 1];
      return [low, high];
    };
    const ys = y.log ? values.map((v) => Math.max(v, 1)) : values;
    const [xLow, xHigh] = range(x, points.map((p) => p[0]), x.log), [yLow, yHigh] = range(y, ys, y.log);
    const left = 62, right = 10, top = 8, bottom = 36;
    const place1 = (v, low, high, log) => (log ? Math.log(Math.max(v, low) / low) / Math.log(high / low) : (v - low) / (high - low));
    const atX = (v) => +(left + (width - left - right) * place1(v, xLow, xHigh, x.log)).toFixed(1);
    const atY = (v) => +(height - bottom - (height - top - bottom) * place1(v, yLow, yHigh, y.log)).toFixed(1);
    const svg = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": describe });
    for (const tick of y.log ? logTicks(yLow, yHigh) : linearTicks(yLow, yHigh, 4)) {
      svg.append(
        shape("path", { class: "grid", d: `M${left},${atY(tick)}H${width - right}` }),
        shape("text", { x: left - 6, y: atY(tick) + 4, "text-anchor": "end" }, y.words(tick)),
      );
    }
    const room = Math.max(2, Math.floor((width - left) / 80));
    const xTicks = x.ticks ?? (x.log ? logTicks(xLow, xHigh) : linearTicks(xLow, xHigh, Math.min(10, room)));
    let taken = -Infinity; // how far the labels reach
    for (const tick of xTicks.filter((t) => !x.whole || Number.isInteger(t)).sort((a, b) => a - b)) {
      svg.append(shape("path", { class: "axis", d: `M${atX(tick)},${height - bottom}v4` }));
      const words = plain(tick), half = 3.7 * words.length + 3;
      if (atX(tick) - half < taken) continue;
      taken = atX(tick) + half;
      svg.append(shape("text", { x: atX(tick), y: height - bottom + 17, "text-anchor": "middle" }, words));
    }
    svg.append(
      shape("path", { class: "axis", d: `M${left},${height - bottom}H${width - right}` }),
      shape("text", { x: width - right, y: height - 4, "text-anchor": "end" }, x.title),
    );
    for (const s of series) {
      const known = s.points.filter((p) => p[1] !== null);
      const color = tone(s.group);
      for (const p of known) {
        if (p[3] === undefined || p[3] === null) continue;
        svg.append(shape("path", {
          d: `M${atX(p[0])},${atY(p[3])}V${atY(p[4])}m-3,0h6M${atX(p[0]) - 3},${atY(p[3])}h6`, stroke: color, fill: "none", "stroke-width": 1.3,
        }));
      }
      if (s.line && known.length > 1) {
        const path = known.map((p, i) => `${i ? "L" : "M"}${atX(p[0])},${atY(p[1])}`).join("");
        svg.append(shape("path", { d: path, fill: "none", stroke: color, "stroke-width": s.thin ? 1.2 : 2, "stroke-linejoin": "round", ...(s.dash ? { "stroke-dasharray": s.dash } : {}) }));
      }
      if (s.marks === "none" && known.length === 1) {
        svg.append(shape("path", { d: `M${atX(known[0][0]) - 7},${atY(known[0][1])}h14`, stroke: color, "stroke-width": 1.2 }));
      }
      const marked = s.marks === "last" ? known.slice(-1) : s.marks === "none" ? [] : known;
      for (const p of marked) {
        const at = { transform: `translate(${atX(p[0])},${atY(p[1])})` };
        const made = s.cross
          ? shape("path", { d: "M-4,-4L4,4M-4,4L4,-4", stroke: color, "stroke-width": 1.6, ...at })
          : markShape(s.group, s.filled, at);
        if (p[2]) made.append(shape("title", {}, p[2]));
        svg.append(made);
      }
    }
    place.replaceChildren(svg);
    return true;
  }

  // -- the parts of the page --------------------------------------------------------------------------------------

  function showState() {
    const now = state.now;
    const { path, full } = STATES[now.state];
    by("state-sign").setAttribute("d", path);
    by("state-sign").classList.toggle("full", Boolean(full));
    say(by("state-words"), now.words);
    say(by("left"), now.left_words ? `, ${now.left_words}` : "");
    document.title = `${run.planned ? `${now.done}/${run.planned} ` : ""}${now.state.replace("_", " ")} · ${run.name}`;
    const notice = by("notice"), parts = [];
    if (now.state === "waiting") parts.push(element("div", {}, "This page begins by itself as soon as there is one."));
    if (now.state === "crashed") {
      parts.push(element("div", {}, "perflab was killed, or the machine went down: the trial that ran is lost, finished ones are whole. To go on:"));
    }
    if (now.state === "ended_early") parts.push(element("div", {}, "The run was interrupted, or could not go on. To run what is missing:"));
    if (now.resume) parts.push(element("code", {}, now.resume));
    if (now.report) parts.push(element("div", {}, element("a", { href: "/report.html" }, "Open the report"), " of what was measured."));
    const told = JSON.stringify([now.state, now.unread, now.resume, now.report]);
    if (notice.dataset.told !== told) {
      notice.dataset.told = told;
      notice.replaceChildren(...parts);
      notice.hidden = !parts.length;
    }
  }

  function showPlan() {
    const rows = run.trials;
    by("progress").hidden = !rows.length;
    const search = run.search ? `search for the breaking point of ${run.search.factor}, at most ${run.search.max_trials} trials for each` : null;
    const facts = [run.workload, search, run.duration_s ? `${plain(run.duration_s)} s measured in each trial` : null, run.command_line];
    say(by("progress-facts"), facts.filter(Boolean).join(" · "));
    const total = run.planned || rows.length;
    by("bar").max = total || 1;
    by("bar").value = state.now.done;
    by("bar").hidden = !run.planned;
    by("strip").replaceChildren(...rows.map((row) => {
      const outcome = outcomeOf(row);
      const title = `trial ${row.order}, ${nameOf(row)}: ${SIGNS[outcome].words}`;
      return element("li", {}, sign(outcome, title));
    }));
    const present = Object.keys(SIGNS).filter((outcome) => rows.some((row) => outcomeOf(row) === outcome));
    by("strip-legend").replaceChildren(...present.map((outcome) => {
      const n = rows.filter((row) => outcomeOf(row) === outcome).length;
      return element("span", { class: "sign" }, sign(outcome), element("span", {}, `${SIGNS[outcome].words} ${count(n)}`));
    }));
  }

  function elapsed(trial) {
    if (trial.running && trial.measured_since !== null) {
      return Math.min(trial.duration_s, Math.max(0, Date.now() / 1000 - trial.measured_since));
    }
    return trial.elapsed_s === null ? null : Math.min(trial.elapsed_s, trial.duration_s);
  }

  function showElapsed() {
    const trial = state && state.now.trial;
    if (!trial || !trial.running) return;
    const spent = elapsed(trial);
    const counted = trial.phase === "measuring" && spent !== null;
    say(by("elapsed"), counted ? `${spent.toFixed(0)} of ${plain(trial.duration_s)} s` : trial.phase);
  }

  function showPresent() {
    const trial = state.now.trial;
    by("present").hidden = trial === null;
    if (trial === null) return;
    by("present").classList.toggle("running", trial.running);
    const group = trial.result ?? 0;
    const label = trial.result === null ? trial.treatment : run.results[trial.result].label;
    say(by("present-title"), trial.running ? `Trial ${trial.order}: ${label}` : `Last trial, ${trial.order}: ${label}`);
    const told = [trial.variant === label ? null : trial.variant, trial.running ? null : (trial.outcome || "unfinished").replace("_", " "), trial.running ? null : trial.reason];
    if (trial.running && trial.phase === "running") told.push("a command: its figures are known after the trial");
    if (trial.warmup_s) told.push(`${plain(trial.warmup_s)} s of warm-up`);
    if (trial.unreadable_lines) told.push(`${count(trial.unreadable_lines)} lines of its records cannot be read`);
    say(by("present-facts"), told.filter(Boolean).join(" · "));
    const row = trial.running ? null : run.trials.find((r) => r.number === trial.number);
    const whole = row && row.received !== null ? row : trial;
    const figures = [
      ["p50", time(whole.p50_ns)], ["p99", time(whole.p99_ns)], ["lost", count(whole.lost)],
      ["late", count(trial.late)], ["too late", count(trial.too_late)], ["received", count(whole.received)],
    ];
    const cells = figures.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)));
    if (trial.running) cells.unshift(element("div", {}, element("dt", {}, "measured"), element("dd", { id: "elapsed" }, "")));
    by("figures").replaceChildren(...cells);
    showElapsed();
    const of = (column, words) => trial.latency.map((p) => [p[0], p[column], `${words} ${time(p[column])} at ${p[0]} s`]);
    const wide = trial.seconds_per_point > 1 ? ` (${trial.seconds_per_point} s each)` : "";
    const x = { low: 0, high: Math.max(trial.duration_s, ...trial.latency.map((p) => p[0])), title: `seconds${wide}` };
    const drawn = chart(by("latency"), {
      series: [
        { points: of(3, "maximum"), group, line: true, thin: true, dash: "1.5 3", marks: "none", filled: false },
        { points: of(2, "p99"), group, line: true, marks: trial.latency.length > 80 ? "last" : "all", filled: true },
        { points: of(1, "p50"), group, line: true, dash: "6 3", marks: "last", filled: false },
      ],
      x, y: { log: true, words: roundTime }, describe: `Latency of trial ${trial.order} over time`,
    });
    by("latency-legend").replaceChildren(...(drawn ? [
      key("p50", { group, stroke: true, dash: "6 3", filled: false }), key("p99", { group, stroke: true, filled: true }),
      key("maximum", { group, stroke: true, dash: "1.5 3", marked: false }),
    ] : [element("span", {}, trial.running ? "none yet" : "none was recorded second by second")]));
    const used = chart(by("cpu"), {
      series: trial.cpu.map((p, i) => ({
        points: p.points.map(([at, share]) => [at, share, `${p.process}: ${share} % at ${at} s`]),
        group: i, line: true, marks: "last", filled: true,
      })),
      x: { low: 0, high: Math.max(trial.duration_s, ...trial.cpu.flatMap((p) => p.points.map(([at]) => at))), title: "seconds" }, y: { low: 0, words: (v) => `${plain(v)} %` }, describe: `CPU of the processes of trial ${trial.order}`,
    });
    const more = trial.processes_not_shown ? [element("span", {}, `and ${trial.processes_not_shown} processes that use less`)] : [];
    by("cpu-legend").replaceChildren(...(used
      ? [...trial.cpu.map((p, i) => key(p.process, { group: i, stroke: true, filled: true })), ...more]
      : [element("span", {}, trial.running ? "none yet" : "none was recorded")]));
  }

  function cell(text, small, attributes = {}) {
    const made = element("td", attributes, text);
    if (small) made.append(element("small", {}, small));
    return made;
  }

  const head = (names) => element("tr", {}, ...names.map(([words, attributes]) => element("th", { scope: "col", ...attributes }, words)));
  const RIGHT = { class: "right" }, WIDE = { class: "right wide" };

  function interval(figure) {
    if (figure.low !== null) return `${time(figure.low)} – ${time(figure.high)}`;
    return figure.n ? `of ${figure.n}` : "";
  }

  function showResults() {
    const results = run.results;
    by("results").hidden = !results.some((r) => r.trials);
    if (by("results").hidden) return;
    say(by("results-title"), state.now.state === "finished" ? "Results" : "Results so far");
    const level = plain(100 * run.confidence);
    const needed = results[0].p50_ns.needed;
    const what = run.figure === "round_trip" ? "Round trips: medians" : "Medians";
    say(by("results-facts"),
      `${what} over trials, below them their ${level} % interval, which takes ${needed} trials. Success: of the trials that were judged, with Wilson's interval.`);
    const own = (results.find((r) => r.own.length) || { own: [] }).own; // what the kind of workload says
    by("results-table").tHead.replaceChildren(head([["result", {}], ["success", RIGHT], ["p50", RIGHT], ["p99", RIGHT], ["lost", WIDE], ...own.map((f) => [f.words, WIDE]), ["no use", WIDE]]));
    by("results-table").tBodies[0].replaceChildren(...results.flatMap((r, group) => {
      if (run.search && !r.trials) return []; // a level that was never tried
      const share = r.judged ? `${r.successes}/${r.judged}` : "–";
      const wilson = r.judged ? `${percent(r.success_low)} – ${percent(r.success_high)}` : "";
      const unused = r.invalid + r.harness_errors;
      return element("tr", {},
        cell(named(r.label, group), "", { class: "name" }), cell(share, wilson, RIGHT),
        cell(time(r.p50_ns.value), interval(r.p50_ns), RIGHT), cell(time(r.p99_ns.value), interval(r.p99_ns), RIGHT),
        cell(count(r.lost), "", WIDE),
        ...own.map((_, n) => r.own[n] || { text: "–" }).map((f) => cell(f.text, f.interval || (f.n ? `of ${f.n}` : ""), WIDE)),
        cell(unused ? count(unused) : "0", unused ? `${r.invalid} invalid` : "", WIDE));
    }));
    showLevels();
  }

  // A search: the share of trials that met the criterion at each level, the fitted share, and where it breaks.
  function showSearch(point) {
    const place = element("div", { class: "chart" });
    const name = point.treatment || point.variant;
    by("levels").append(
      element("h3", {}, `${point.factor} at which it breaks `, element("small", {}, `${name}; ${point.criterion}; share of trials that met it`)),
      place, element("ul", { class: "facts" }, ...(point.words || []).map((words) => element("li", {}, words))));
    const log = point.scale === "log", fit = point.fit;
    const series = [];
    if (fit) series.push({ points: fit.level.map((level, i) => [level, 100 * fit.share[i]]), group: 0, line: true, dash: "6 3", marks: "none" });
    series.push({
      points: point.levels.filter((l) => l.n).map((l) => [l.level, 100 * l.met / l.n, `${point.factor} ${l.level}: ${l.met} of ${l.n}`, 100 * l.low, 100 * l.high]),
      group: 0, marks: "all", filled: true,
    });
    if (point.interval) {
      const words = `between ${plain(point.interval.low)} and ${plain(point.interval.high)}`;
      const ends = [point.interval.low, point.interval.high].map((level) => [level, 100 * point.share, words]);
      series.push({ points: ends, group: 1, line: true, marks: "all", filled: false });
    }
    const drawn = chart(place, {
      series, x: { log, low: point.low, high: point.high, title: point.factor }, y: { low: 0, high: 100, words: (v) => `${plain(v)} %` },
      describe: `Share of trials that met the criterion at each level of ${point.factor}`,
    });
    if (drawn) {
      place.after(element("div", { class: "legend keys" }, key("met, with its interval", { group: 0, filled: true }),
        ...(fit ? [key("fitted", { group: 0, stroke: true, dash: "6 3", marked: false })] : []),
        ...(point.interval ? [key(`breaks within (${plain(100 * point.interval.level)} %)`, { group: 1, stroke: true, filled: false })] : [])));
    }
  }

  function showLevels() {
    by("levels").replaceChildren();
    (run.breaking_points || []).forEach(showSearch);
    for (const { factor, curves } of run.levels) {
      const all = curves.flatMap((c) => c.points).map((p) => p.level);
      const log = Math.min(...all) > 0 && Math.max(...all) >= 10 * Math.min(...all);
      const x = { log, title: factor, ticks: new Set(all).size <= 8 ? [...new Set(all)] : undefined };
      const place = element("div", { class: "chart" });
      const title = element("h3", {}, "p99 over ", factor, " ", element("small", {}, "medians over trials, with intervals where there are enough"));
      const legend = element("div", { class: "legend keys" }, ...curves.map((c, group) => key(c.label, { group, stroke: true, filled: true })));
      by("levels").append(title, place, ...(curves.length > 1 ? [legend] : []));
      const drawn = chart(place, {
        series: curves.map((c, group) => ({
          points: c.points.map((p) => {
            const figure = run.results[p.result].p99_ns;
            return [p.level, figure.value, `${run.results[p.result].label}: p99 ${time(figure.value)}, ${figure.n} trials`, figure.low, figure.high];
          }),
          group, line: true, marks: "all", filled: true,
        })),
        x, y: { log: true, words: roundTime }, describe: `p99 at each level of ${factor}`,
      });
      if (!drawn) title.remove();
    }
    if (run.unavailable_levels && run.unavailable_levels.length) {
      const left = run.unavailable_levels.map((l) => `${l.factor}=${l.level}: ${l.reason}`).join("; ");
      by("levels").append(element("p", { class: "facts" }, `Left out, since this machine cannot do them: ${left}`));
    }
  }

  function showTrials() {
    const rows = run.trials.filter((row) => row.outcome !== null && row.outcome !== "running");
    by("trials").hidden = !rows.length;
    if (!rows.length) return;
    const groups = run.results.map((_, group) => group).filter((group) => rows.some((row) => row.result === group));
    const points = (group, figure, good) => rows
      .filter((row) => row.result === group && (row.outcome === "success") === good)
      .map((row) => [row.order, row[figure], `trial ${row.order}, ${nameOf(row)}: ${figure.slice(0, 3)} ${time(row[figure])}, ${SIGNS[outcomeOf(row)].words}`]);
    const drawn = chart(by("course"), {
      series: groups.flatMap((group) => [
        { points: points(group, "p50_ns", true), group, marks: "all", filled: false },
        { points: points(group, "p99_ns", true), group, marks: "all", filled: true },
        { points: [...points(group, "p50_ns", false), ...points(group, "p99_ns", false)], group, marks: "all", cross: true },
      ]),
      x: { low: 0.5, high: Math.max(run.planned || 0, run.trials.length) + 0.5, title: "trial", whole: true },
      y: { log: true, words: roundTime }, describe: "p50 and p99 of each finished trial",
    });
    by("course-legend").replaceChildren(...(drawn ? [
      ...groups.map((group) => key(run.results[group].label, { group, filled: true })),
      key("p99", { filled: true }), key("p50", { filled: false }),
      ...(rows.some((row) => row.outcome !== "success") ? [key("no success", { cross: true })] : []),
    ] : []));
    by("trials-table").tHead.replaceChildren(head([["trial", RIGHT], ["treatment", {}], ["", {}], ["p50", RIGHT], ["p99", RIGHT], ["lost", RIGHT], ["took", WIDE]]));
    const shown = rows.slice(-MAX_ROWS).reverse();
    by("trials-table").tBodies[0].replaceChildren(...shown.flatMap((row) => {
      const outcome = outcomeOf(row);
      const words = element("span", { class: "sign" }, sign(outcome, SIGNS[outcome].words), element("span", { class: "wide" }, SIGNS[outcome].words));
      const why = row.outcome !== "success" && row.reason;
      const made = element("tr", why ? { class: "before" } : {},
        cell(String(row.order), "", RIGHT), cell(row.result === null ? "" : named(nameOf(row), row.result), "", { class: "name" }), cell(words, ""),
        cell(time(row.p50_ns), "", RIGHT), cell(time(row.p99_ns), "", RIGHT), cell(count(row.lost), "", RIGHT),
        cell(row.took_s === null ? "–" : seconds(row.took_s), "", WIDE));
      return why ? [made, element("tr", { class: "reason" }, element("td"), element("td", { colspan: "6" }, row.reason))] : [made];
    }));
    say(by("trials-facts"), rows.length > shown.length ? `The last ${shown.length} of ${rows.length}; the others are in /state.json.` : "");
  }

  function showNotes() {
    by("notes").hidden = !run.notes.length;
    by("notes").replaceChildren(...run.notes.map((note) => element("p", {}, note)));
  }

  function showCost() {
    const { cpu_s, cpu_percent, seconds: served } = state.server;
    const share = cpu_percent === null ? "" : `, ${cpu_percent} % of one CPU`;
    say(by("cost"), `Serving this page has taken ${cpu_s.toFixed(2)} s of CPU time in ${seconds(served)}${share}, at the lowest priority.`);
  }

  // -- asking -----------------------------------------------------------------------------------------------------

  // The server gives way to everything else on its machine: an answer may take long where all CPUs are loaded.
  function waiting() {
    by("slow").hidden = false;
  }

  async function ask() {
    clearTimeout(timer);
    if (document.hidden || asking) return;
    asking = true;
    let next = LOST_POLL_MS;
    const slow = setTimeout(waiting, SLOW_MS);
    try {
      const known = run === null ? "" : `&known=${state.run_version}`;
      const headers = state === null ? {} : { "If-None-Match": `"${state.version}"` };
      const answer = await fetch(`/state.json?run=${encodeURIComponent(number)}${known}`, { headers, cache: "no-store" });
      if (answer.status === 200) {
        const found = await answer.json();
        const changed = found.run !== null;
        run = found.run ?? run;
        const before = state;
        state = found;
        show(changed, before);
      } else if (answer.status !== 304) throw new Error(await answer.text());
      if (failedAt !== null) {
        failedAt = null;
        show(false, null);
      }
      next = state.now.unread ? POLL_MS.running : POLL_MS[state.now.state] ?? ENDED_POLL_MS;
      showElapsed();
    } catch (error) {
      failedAt = failedAt ?? new Date();
      say(by("state-words"), `no answer from the server since ${failedAt.toLocaleTimeString()}: it has ended, or this page is of another run`);
      say(by("left"), "");
      by("state-sign").setAttribute("d", STATES.damaged.path);
    } finally {
      asking = false;
      clearTimeout(slow);
      by("slow").hidden = true;
    }
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(ask, next);
  }

  function show(changed, before) {
    say(by("name"), run.name);
    showState();
    if (changed || before === null || before.now.done !== state.now.done || before.now.state !== state.now.state) {
      showPlan();
      showResults();
      showTrials();
      showNotes();
    }
    showPresent();
    showCost();
    root.dataset.version = state.version;
    root.dataset.state = state.now.state;
  }

  by("theme").addEventListener("change", (event) => { root.dataset.theme = event.target.value; });
  document.addEventListener("visibilitychange", ask);
  let width = innerWidth, resized = 0;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(() => {
      if (innerWidth !== width && state !== null) {
        width = innerWidth;
        show(true, null);
      }
    }, 200);
  });
  for (const link of document.querySelectorAll("nav a")) {
    if (new URL(link.href).searchParams.get("run") === number) link.setAttribute("aria-current", "page");
  }
  ask();
})();
