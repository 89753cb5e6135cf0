// Films of trials (perflab/report/film/document.py): the robot drawn from its meshes, what was planned beside what was
// done, and below it joints, loops and the scheduler on the same axis of time. Plain canvas with a depth buffer of its
// own: it looks the same wherever there is a browser.
window.perflabFilm = (() => {
  "use strict";
  const MOST_PIXELS = 1.1e6; // of the picture in memory, which is up to twice as fine as what is seen
  const NEAR_M = 0.05, CREASE = 0.75; // cosine of the angle between faces from which on an edge is seen
  const LIGHT = unit([0.45, -0.5, 0.85]), FILL = unit([-0.7, 0.5, 0.25]);
  const SPEEDS = [0.1, 0.25, 0.5, 1, 2];
  const STILL_STEP_S = 0.5; // from picture to picture, for reduced motion
  const SVG = "http://www.w3.org/2000/svg";

  // ---- numbers

  function unit(v) { const n = Math.hypot(...v) || 1; return v.map((x) => x / n); }
  const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

  // A pose is a matrix of three rows of four numbers.
  function pose({ position: p, orientation: [x, y, z, w] }) {
    return [
      1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w), p[0],
      2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w), p[1],
      2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y), p[2],
    ];
  }
  function times(a, b) {
    const m = new Array(12);
    for (let r = 0; r < 12; r += 4)
      for (let c = 0; c < 4; c++) m[r + c] = a[r] * b[c] + a[r + 1] * b[4 + c] + a[r + 2] * b[8 + c] + (c === 3 ? a[r + 3] : 0);
    return m;
  }
  const moved = (m, [x, y, z]) => [0, 4, 8].map((r) => m[r] * x + m[r + 1] * y + m[r + 2] * z + m[r + 3]);
  const middle = (m) => [m[3], m[7], m[11]];

  const summed = (numbers, unit) => { let sum = 0; return numbers.map((n) => (sum += n) / unit); };

  // Rows over time, which were written as differences.
  function track(found, unit) {
    if (!found) return null;
    const at = summed(found.times, 1000), values = found.values.map((column) => summed(column, unit));
    return {
      columns: found.columns, at, values,
      place(s) {
        let low = 0, high = at.length;
        while (low < high) { const mid = (low + high) >> 1; if (at[mid] <= s) low = mid + 1; else high = mid; }
        return Math.max(0, low - 1);
      },
      row(s) {
        const n = this.place(s), next = Math.min(n + 1, at.length - 1);
        const share = next > n ? Math.min(1, Math.max(0, (s - at[n]) / (at[next] - at[n]))) : 0;
        return Object.fromEntries(this.columns.map((name, c) => [name, values[c][n] + share * (values[c][next] - values[c][n])]));
      },
    };
  }

  // ---- bodies

  function joined(base, joint, row) {
    if (!joint) return base;
    const values = joint.columns.map((column) => row[column]);
    if (joint.kind === "free") {
      if (values.some((value) => value === undefined)) return base;
      return pose({ position: values.slice(0, 3), orientation: unit(values.slice(3)) });
    }
    const value = values[0] ?? 0, axis = joint.axis;
    if (joint.kind === "slide") return times(base, pose({ position: axis.map((a) => a * value), orientation: [0, 0, 0, 1] }));
    const sine = Math.sin(value / 2);
    const turn = pose({ position: [0, 0, 0], orientation: [...axis.map((a) => a * sine), Math.cos(value / 2)] });
    const back = moved(turn, joint.position);
    [turn[3], turn[7], turn[11]] = minus(joint.position, back);
    return times(base, turn);
  }

  function poses(scene, row) {
    const found = new Map();
    for (const body of scene.bodies) {
      const parent = body.parent === null ? null : found.get(body.parent);
      found.set(body.name, joined(parent ? times(parent, body.at) : body.at, body.joint, row));
    }
    return found;
  }

  function solid(points, faces) { return { points, faces }; }

  function box([a, b, c]) {
    const points = [];
    for (const x of [-a / 2, a / 2]) for (const y of [-b / 2, b / 2]) for (const z of [-c / 2, c / 2]) points.push(x, y, z);
    return solid(points, [0, 1, 3, 0, 3, 2, 4, 6, 7, 4, 7, 5, 0, 4, 5, 0, 5, 1, 2, 3, 7, 2, 7, 6, 0, 2, 6, 0, 6, 4, 1, 5, 7, 1, 7, 3]);
  }

  // Rings of corners from below, with a corner below and above.
  function turned(rings, low, high) {
    const n = 28, points = [0, 0, low], faces = [];
    for (const [radius, z] of rings)
      for (let i = 0; i < n; i++) points.push(radius * Math.cos((2 * Math.PI * i) / n), radius * Math.sin((2 * Math.PI * i) / n), z);
    points.push(0, 0, high);
    const at = (ring, i) => 1 + ring * n + (i % n), top = 1 + rings.length * n;
    for (let i = 0; i < n; i++) {
      faces.push(0, at(0, i + 1), at(0, i));
      for (let r = 0; r + 1 < rings.length; r++) {
        faces.push(at(r, i), at(r, i + 1), at(r + 1, i + 1), at(r, i), at(r + 1, i + 1), at(r + 1, i));
      }
      faces.push(at(rings.length - 1, i), at(rings.length - 1, i + 1), top);
    }
    return solid(points, faces);
  }

  function shaped(shape) {
    if (shape.mesh) return solid(shape.mesh.points, shape.mesh.faces);
    if (shape.box) return box(shape.box);
    if (shape.cylinder) {
      const { radius, height } = shape.cylinder;
      return turned([[radius, -height / 2], [radius, height / 2]], -height / 2, height / 2);
    }
    const rings = Array.from({ length: 9 }, (_, i) => ((i + 1) / 10 - 0.5) * Math.PI);
    return turned(rings.map((a) => [shape.sphere * Math.cos(a), shape.sphere * Math.sin(a)]), -shape.sphere, shape.sphere);
  }

  // Corners, and for each corner of each face the direction in which the surface looks there: that of the faces around
  // it, but for those beyond an edge.
  function meshed(shape) {
    const { points, faces } = shaped(shape), at = pose(shape), corners = [], normals = [];
    for (let i = 0; i < points.length; i += 3) corners.push(moved(at, points.slice(i, i + 3)));
    const known = new Map(), places = corners.map((c) => {
      const key = c.map((x) => Math.round(x * 1e5)).join();
      if (!known.has(key)) known.set(key, []);
      return known.get(key);
    });
    const looks = [];
    for (let i = 0; i < faces.length; i += 3) {
      const [a, b, c] = [0, 1, 2].map((n) => corners[faces[i + n]]);
      const wide = cross(minus(b, a), minus(c, a)), look = unit(wide);
      looks.push(look);
      for (let n = 0; n < 3; n++) places[faces[i + n]].push([look, wide]);
    }
    for (let i = 0; i < faces.length; i += 3) {
      for (let n = 0; n < 3; n++) {
        const sum = [0, 0, 0];
        for (const [look, wide] of places[faces[i + n]]) {
          if (dot(look, looks[i / 3]) < CREASE) continue;
          for (let k = 0; k < 3; k++) sum[k] += wide[k];
        }
        normals.push(unit(sum));
      }
    }
    return { corners, faces, normals };
  }

  const prepared = new WeakMap();
  function prepare(scene) {
    if (!prepared.has(scene)) {
      let robot = 0;
      const bodies = scene.bodies.map((body) => ({
        ...body, at: pose(body), meshes: body.shapes.map(meshed),
        look: body.kind === "robot" ? (body.shapes.length && robot++ % 2 ? "other" : "robot") : "object",
      }));
      prepared.set(scene, { ...scene, bodies });
    }
    return prepared.get(scene);
  }

  // ---- the picture

  class Picture {
    constructor(canvas) {
      this.canvas = canvas;
      this.memory = document.createElement("canvas");
    }

    // `view` says where to, from how far and from which side, in degrees as MuJoCo has them.
    begin(view) {
      const { canvas } = this, shown = window.devicePixelRatio || 1;
      const wide = Math.max(40, canvas.clientWidth), high = Math.max(40, canvas.clientHeight);
      const fine = Math.min(Math.max(2, shown), Math.sqrt(MOST_PIXELS / (wide * high)));
      [canvas.width, canvas.height] = [wide * shown, high * shown].map(Math.round);
      this.scale = shown;
      const width = Math.round(wide * fine), height = Math.round(high * fine);
      if (this.width !== width || this.height !== height) {
        [this.width, this.height] = [width, height];
        [this.memory.width, this.memory.height] = [width, height];
        this.image = new ImageData(width, height);
        this.pixels = new Uint32Array(this.image.data.buffer);
        this.depth = new Float32Array(width * height);
      }
      this.pixels.fill(0);
      this.depth.fill(0);
      const az = (view.azimuth * Math.PI) / 180, el = (view.elevation * Math.PI) / 180;
      this.forward = [Math.cos(el) * Math.cos(az), Math.cos(el) * Math.sin(az), Math.sin(el)];
      this.right = unit(cross(this.forward, [0, 0, 1]));
      this.up = cross(this.right, this.forward);
      this.eye = view.at.map((x, i) => x - view.distance * this.forward[i]);
      // All that moves is within a circle, which is as wide as the smaller side of the picture.
      this.focal = Math.min(width, height) / 2 / Math.tan((view.fov * Math.PI) / 360);
    }

    // Place in memory, and one over the distance; null behind the eye.
    seen(point) {
      const from = minus(point, this.eye), far = dot(from, this.forward);
      if (far < NEAR_M) return null;
      return [this.width / 2 + (this.focal * dot(from, this.right)) / far, this.height / 2 - (this.focal * dot(from, this.up)) / far, 1 / far];
    }

    // `color` is of three numbers; where `planned`, every other pixel is left out.
    mesh({ corners, faces, normals }, at, color, planned) {
      const seen = corners.map((corner) => this.seen(moved(at, corner)));
      for (let i = 0; i < faces.length; i += 3) {
        const a = seen[faces[i]], b = seen[faces[i + 1]], c = seen[faces[i + 2]];
        if (!a || !b || !c) continue;
        const area = (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]);
        if (area >= 0) continue; // it looks away; places grow downwards
        const lit = [0, 1, 2].map((n) => {
          const v = normals[i + n];
          const look = [0, 4, 8].map((r) => at[r] * v[0] + at[r + 1] * v[1] + at[r + 2] * v[2]);
          return 0.42 + 0.5 * Math.max(0, dot(look, LIGHT)) + 0.14 * Math.max(0, dot(look, FILL)) + 0.1 * look[2];
        });
        this.face(a, b, c, area, lit, color, planned);
      }
    }

    face(a, b, c, area, [la, lb, lc], [red, green, blue], planned) {
      const { width, height, depth, pixels } = this;
      const left = Math.max(0, Math.ceil(Math.min(a[0], b[0], c[0]) - 0.5)), right = Math.min(width - 1, Math.floor(Math.max(a[0], b[0], c[0]) - 0.5));
      const top = Math.max(0, Math.ceil(Math.min(a[1], b[1], c[1]) - 0.5)), bottom = Math.min(height - 1, Math.floor(Math.max(a[1], b[1], c[1]) - 0.5));
      const ub = [(c[1] - a[1]) / area, (a[0] - c[0]) / area], uc = [(a[1] - b[1]) / area, (b[0] - a[0]) / area];
      for (let y = top; y <= bottom; y++) {
        const py = y + 0.5 - a[1];
        for (let x = left; x <= right; x++) {
          if (planned && (x + y) & 1) continue;
          const px = x + 0.5 - a[0], wb = px * ub[0] + py * ub[1], wc = px * uc[0] + py * uc[1];
          if (wb < 0 || wc < 0 || wb + wc > 1) continue;
          const near = a[2] + wb * (b[2] - a[2]) + wc * (c[2] - a[2]), place = y * width + x;
          if (near <= depth[place]) continue;
          depth[place] = near;
          const lit = Math.min(1.08, la + wb * (lb - la) + wc * (lc - la));
          const [r, g, bl] = [red * lit, green * lit, blue * lit];
          pixels[place] = 0xff000000 | ((bl > 255 ? 255 : bl) << 16) | ((g > 255 ? 255 : g) << 8) | (r > 255 ? 255 : r);
        }
      }
    }

    // The ground as a grid, behind all else.
    ground(color, view) {
      const step = 0.2, reach = 6, x0 = Math.round(view.at[0] / step) * step, y0 = Math.round(view.at[1] / step) * step;
      this.context = this.canvas.getContext("2d");
      for (let n = -reach; n <= reach; n++) {
        this.line([[x0 + n * step, y0 - reach * step, 0], [x0 + n * step, y0 + reach * step, 0]], color, 1, []);
        this.line([[x0 - reach * step, y0 + n * step, 0], [x0 + reach * step, y0 + n * step, 0]], color, 1, []);
      }
    }

    put() {
      const memory = this.memory.getContext("2d");
      memory.putImageData(this.image, 0, 0);
      this.context.imageSmoothingQuality = "high";
      this.context.drawImage(this.memory, 0, 0, this.canvas.width, this.canvas.height);
    }

    shown(point) {
      const at = this.seen(point);
      return at && [(at[0] * this.canvas.width) / this.width, (at[1] * this.canvas.height) / this.height, at[2], at];
    }

    // Fainter where something stands before it.
    line(points, color, wide, dash) {
      const { context, scale } = this, places = points.map((point) => this.shown(point));
      context.strokeStyle = color;
      context.lineWidth = wide * scale;
      context.lineCap = "round";
      context.setLineDash(dash.map((n) => n * scale));
      let hidden = null, gone = 0;
      const end = () => { if (hidden !== null) { context.globalAlpha = hidden ? 0.3 : 1; context.stroke(); } hidden = null; };
      for (let i = 1; i < places.length; i++) {
        const [a, b] = [places[i - 1], places[i]];
        if (!a || !b) { end(); continue; }
        const x = Math.round(b[3][0]), y = Math.round(b[3][1]);
        const before = x >= 0 && y >= 0 && x < this.width && y < this.height ? this.depth[y * this.width + x] : 0;
        const covered = points.length > 2 && before > b[2] * 1.015;
        if (covered !== hidden) {
          end();
          context.beginPath();
          context.lineDashOffset = gone;
          context.moveTo(a[0], a[1]);
          hidden = covered;
        }
        context.lineTo(b[0], b[1]);
        gone += Math.hypot(b[0] - a[0], b[1] - a[1]);
      }
      end();
      context.globalAlpha = 1;
      context.setLineDash([]);
    }

    // A ring around a place, as large as a ball there but always large enough to see, and a word beside it.
    ring(point, radius, color, words, cross) {
      const at = this.shown(point), { context, scale } = this;
      if (!at) return;
      const wide = Math.max(7 * scale, (this.focal * radius * at[2] * this.canvas.width) / this.width);
      context.strokeStyle = color;
      context.lineWidth = 2.5 * scale;
      context.beginPath();
      if (cross) {
        for (const way of [-1, 1]) {
          context.moveTo(at[0] - wide, at[1] - way * wide);
          context.lineTo(at[0] + wide, at[1] + way * wide);
        }
      } else context.arc(at[0], at[1], wide, 0, 2 * Math.PI);
      context.stroke();
      context.font = `600 ${13 * scale}px system-ui, "DejaVu Sans", sans-serif`;
      const room = this.canvas.width - at[0] - wide - 8 * scale, needed = context.measureText(words).width;
      context.textAlign = needed > room ? "right" : "left";
      const side = needed > room ? -1 : 1;
      context.lineWidth = 4 * scale;
      context.strokeStyle = this.paper;
      context.lineJoin = "round";
      context.strokeText(words, at[0] + side * (wide + 5 * scale), at[1] + 4 * scale);
      context.fillStyle = color;
      context.fillText(words, at[0] + side * (wide + 5 * scale), at[1] + 4 * scale);
    }
  }

  // ---- the page

  function made(tag, attributes = {}, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name in element && name !== "role") element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...inside.filter((one) => one !== null));
    return element;
  }

  function drawn(tag, attributes, inside = []) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...inside);
    return element;
  }

  const said = (s) => `${s.toFixed(2)} s`;

  function Film(host, scene, film, about) {
    let all, now = 0, playing = 0, before = 0, waiting = 0, speed = 1, pictured = false, end = 0, view;
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    const frames = about.frames ?? [];
    const canvas = made("canvas", { className: "film-canvas", tabIndex: 0, role: "img" });
    const image = made("img", { className: "film-image", alt: "", hidden: true });
    const banner = made("p", { className: "film-banner", hidden: true });
    const probe = made("i", { hidden: true });
    const picture = new Picture(canvas);
    const button = made("button", { type: "button", onclick: () => (playing ? pause() : play()) });
    const slider = made("input", { type: "range", min: 0, step: 0.02, value: 0, "aria-label": "Time in the film", oninput: () => { pause(); show(Number(slider.value)); } });
    const time = made("output", { className: "film-time" });
    const speeds = made("select", { "aria-label": "Speed", onchange: () => (speed = Number(speeds.value)) },
      ...SPEEDS.map((one) => made("option", { value: one, selected: one === 1 }, `${one}×`)));
    const ghost = made("input", { type: "checkbox", checked: true, onchange: later });
    const looks = frames.length < 2 ? null : made("select", { "aria-label": "What draws it", onchange: () => { pictured = looks.value === "1"; later(); } },
      made("option", { value: "0" }, "drawn here"), made("option", { value: "1" }, "MuJoCo’s pictures"));
    const home = made("button", { type: "button", onclick: () => { view = { ...about.camera }; later(); } }, "Reset view");
    const stage = made("div", { className: "film-stage" }, canvas, image, banner, probe);
    const cursor = made("div", { className: "film-cursor" });
    const charts = made("div", { className: "film-charts" });
    const moments = made("ol", { className: "film-moments" });
    const controls = made("div", { className: "film-controls", role: "group", "aria-label": "Film" }, button, slider, time, speeds,
      made("label", {}, ghost, " planned robot"), looks, home);
    const hint = made("p", { className: "faint film-hint" }, "Drag to turn it; with the focus on it arrows turn, + and − zoom, space plays.");
    host.replaceChildren(made("div", { className: "film-left" }, stage, controls, hint, moments), made("div", { className: "film-right" }, charts));
    scene = prepare(scene);
    view = { ...about.camera };

    function color(name) {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    }
    const numbers = (name) => color(name).match(/[\d.]+/g).slice(0, 3).map(Number);

    // ---- what was recorded

    function read(fresh) {
      film = fresh;
      end = Math.max(film.s, 0.02);
      const joints = track(film.joints, 1e4);
      all = {
        joints, desired: track(film.desired, 1e4), lateness: track(film.lateness, 1),
        plans: film.plans.map((plan) => ({ ...plan, rows: plan.rows.map((row) => row.map((n) => n / 1e4)) })),
      };
      const tip = (row) => scene.tip && middle(poses(scene, row).get(scene.tip));
      all.way = joints.at.map((s) => tip(joints.row(s)));
      all.ways = all.plans.map((plan) => {
        const from = joints.row(plan.at);
        return plan.rows.map((row) => tip({ ...from, ...named(plan.columns, row) }));
      });
      slider.max = end;
      draw_charts();
    }
    const named = (columns, row) => Object.fromEntries(columns.map((name, n) => [name, row[n]]));

    function plan_at(s) {
      let found = -1;
      all.plans.forEach((plan, n) => { if (plan.at <= s) found = n; });
      return found;
    }
    function planned(plan, s) {
      const next = plan.s.findIndex((at) => at > s);
      if (next === 0) return plan.rows[0];
      if (next < 0) return plan.rows.at(-1);
      const share = (s - plan.s[next - 1]) / (plan.s[next] - plan.s[next - 1]);
      return plan.rows[next].map((value, n) => plan.rows[next - 1][n] + share * (value - plan.rows[next - 1][n]));
    }
    const moment_at = (s) => film.moments.filter(([at]) => at <= s + 1e-6).at(-1);
    const words_of = (moment) => (moment ? moment[1].split(":")[0] : "");
    const failure = () => film.moments.find(([, , failed]) => failed);

    // ---- one picture

    function later() {
      if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; draw(); });
    }

    function draw() {
      if (!stage.isConnected) return; // another film has taken its place
      const row = all.joints.row(now), n = plan_at(now), moment = moment_at(now), failed = failure();
      const has_failed = failed !== undefined && failed[0] <= now + 1e-6;
      image.hidden = !pictured;
      canvas.classList.toggle("covered", pictured);
      if (pictured) {
        const nearest = frames.reduce((best, one) => (Math.abs(one[0] - now) < Math.abs(best[0] - now) ? one : best));
        if (image.dataset.at !== String(nearest[0])) [image.dataset.at, image.src] = [String(nearest[0]), `data:image/jpeg;base64,${nearest[1]}`];
        image.alt = `The robot at ${said(nearest[0])}, by MuJoCo`;
      } else {
        picture.begin(view);
        picture.paper = color("background");
        picture.ground(color("grid"), view);
        const looks = { robot: numbers("film-robot"), other: numbers("film-other"), object: numbers("film-object"), planned: numbers("film-planned") };
        const here = poses(scene, row);
        for (const body of scene.bodies) for (const mesh of body.meshes) picture.mesh(mesh, here.get(body.name), looks[body.look]);
        if (ghost.checked && n >= 0) {
          const plan = all.plans[n], to = named(plan.columns, planned(plan, now - plan.at));
          if (plan.columns.some((name) => Math.abs(to[name] - row[name]) > about.apart)) {
            const there = poses(scene, { ...row, ...to });
            for (const body of scene.bodies) {
              if (body.look === "object" || middle(there.get(body.name)).every((x, i) => Math.abs(x - middle(here.get(body.name))[i]) < 0.004)) continue;
              for (const mesh of body.meshes) picture.mesh(mesh, there.get(body.name), looks.planned, true);
            }
          }
        }
        picture.put();
        if (scene.tip) {
          const shown = n >= 0 ? n : all.plans.length ? 0 : -1;
          if (shown >= 0) picture.line(all.ways[shown], color("film-planned"), 2.5, [7, 6]);
          if (film.considered.length) picture.line(film.considered, color("film-planned"), 2.5, [2, 6]);
          const from = n < 0 ? 0 : all.joints.place(all.plans[n].at);
          const way = all.way.slice(from, all.joints.place(now) + 1);
          if (way.length > 1) picture.line(way, color("film-done"), 3.5, []);
          // Of several marks the one that is meant has a name, the others are faint.
          const meant = words_of(moment), one = scene.marks.some((mark) => mark.name === meant);
          const is_other = (mark) => (one ? mark.name !== meant : scene.marks.length > 1);
          for (const mark of [...scene.marks].sort((a, b) => is_other(b) - is_other(a))) {
            const other = is_other(mark);
            picture.ring(mark.position, mark.radius, color(other ? "faint" : "film-goal"), other ? "" : mark.name);
          }
          if (has_failed) picture.ring(middle(here.get(scene.tip)), 0.03, color("bad"), "failed", true);
        }
      }
      const words = moment ? moment[1] : "";
      banner.hidden = !words;
      banner.textContent = has_failed ? `✖ ${failed[1]}` : words;
      banner.classList.toggle("bad", has_failed);
      canvas.setAttribute("aria-label", `The robot at ${said(now)}${words ? `: ${words}` : ""}. Drag to turn it.`);
      slider.value = now;
      slider.setAttribute("aria-valuetext", `${said(now)} of ${said(end)}${words ? `, ${words}` : ""}`);
      time.textContent = `${now.toFixed(2)} / ${end.toFixed(2)} s`;
      cursor.style.left = `${(100 * now) / end}%`;
      host.dataset.at = now.toFixed(3);
      for (const [label, value] of labels) label.textContent = value(now);
    }

    function show(s) {
      now = Math.min(end, Math.max(0, s));
      later();
    }

    // ---- time

    function tick(stamp) {
      if (!playing) return;
      const passed = before ? ((stamp - before) / 1000) * speed : 0;
      const step = still.matches ? STILL_STEP_S * speed : 0;
      if (!step || passed >= step || !before) {
        before = stamp;
        now = Math.min(end, now + (step && passed ? step : passed));
        draw();
      }
      if (now >= end) pause();
      else playing = requestAnimationFrame(tick);
    }
    function play() {
      if (now >= end - 1e-6) now = 0;
      before = 0;
      playing = requestAnimationFrame(tick);
      button.textContent = "Pause";
    }
    function pause() {
      cancelAnimationFrame(playing);
      playing = 0;
      button.textContent = "Play";
    }

    // ---- turning it

    canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      if (!canvas.hasPointerCapture(event.pointerId)) return;
      turn(-event.movementX * 0.4, -event.movementY * 0.3);
    });
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas) return; // the page goes on
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.001));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const does = {
        ArrowLeft: () => turn(6, 0), ArrowRight: () => turn(-6, 0), ArrowUp: () => turn(0, 4), ArrowDown: () => turn(0, -4),
        "+": () => zoom(0.9), "=": () => zoom(0.9), "-": () => zoom(1.1), " ": () => (playing ? pause() : play()),
        Home: () => show(0), End: () => show(end),
      }[event.key];
      if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      does();
    });
    function turn(sideways, upwards) {
      view.azimuth += sideways;
      view.elevation = Math.max(-89, Math.min(20, view.elevation - upwards));
      later();
    }
    function zoom(by) {
      view.distance = Math.max(0.3, Math.min(8, view.distance * by));
      later();
    }

    // ---- charts

    const labels = [];

    // A row: what it is on the left, what it is at the time on the right, and what is drawn in it, x in seconds.
    function row_of(name, high, inside, value, what) {
      const label = made("span", { className: "film-value" });
      if (value) labels.push([label, value]);
      const svg = drawn("svg", { viewBox: `0 0 ${end} 1`, preserveAspectRatio: "none", role: "img", "aria-label": what }, inside);
      const row = made("div", { className: `film-row film-${high}` }, made("span", { className: "film-name" }, name), label, svg);
      charts.append(row);
    }
    function path(points, className) {
      const d = points.map(([x, y], i) => `${i && points[i - 1] ? "L" : "M"}${x.toFixed(3)} ${y.toFixed(4)}`).join("");
      return drawn("path", { d, class: className, "vector-effect": "non-scaling-stroke" });
    }
    const filled = (points) => path([[points[0]?.[0] ?? 0, 1], ...points, [points.at(-1)?.[0] ?? 0, 1]], "area");

    function draw_charts() {
      charts.replaceChildren();
      labels.length = 0;
      const { joints, desired, lateness, plans } = all;
      const wanted = new Set(desired?.columns ?? plans.flatMap((plan) => plan.columns));
      const shown = joints.columns.map((name, n) => [name, n]).filter(([name]) => !wanted.size || wanted.has(name)).slice(0, 12);
      const common = shown.length > 1 ? prefix(shown.map(([name]) => name)) : "";
      charts.append(made("p", { className: "film-legend" },
        made("span", { className: "key planned" }, "planned"), desired && made("span", { className: "key desired" }, "asked for by the controller"),
        made("span", { className: "key done" }, "executed"),
        film.considered.length ? made("span", { className: "key considered" }, "planned, of which nothing was executed") : null,
        made("span", { className: "faint" }, "rad, m")));
      for (const [name, n] of shown) {
        const values = joints.values[n], own = desired?.columns.indexOf(name) ?? -1;
        const lines = plans.map((plan, k) => {
          const c = plan.columns.indexOf(name), until = plans[k + 1]?.at ?? Infinity;
          return c < 0 ? [] : plan.s.map((s, i) => [plan.at + s, plan.rows[i][c]]).filter(([s]) => s <= Math.min(end, until));
        });
        const every = [...values, ...lines.flat().map(([, y]) => y), ...(own < 0 ? [] : desired.values[own])];
        let [low, high] = [Math.min(...every), Math.max(...every)];
        const spare = Math.max(0.02, 0.12 * (high - low));
        [low, high] = [low - spare, high + spare];
        const y = (value) => 1 - (value - low) / (high - low);
        const inside = [...lines.filter((line) => line.length > 1).map((line) => path(line.map(([s, v]) => [s, y(v)]), "planned"))];
        if (own >= 0) inside.push(path(desired.at.map((s, i) => [s, y(desired.values[own][i])]), "desired"));
        inside.push(path(joints.at.map((s, i) => [s, y(values[i])]), "done"));
        row_of(name.slice(common.length) || name, "joint", inside, (s) => joints.row(s)[name].toFixed(3),
          `${name}: planned and executed position over time`);
      }
      if (desired) {
        const apart = desired.at.map((s, i) => {
          const row = joints.row(s);
          return Math.max(...desired.columns.map((name, c) => Math.abs((row[name] ?? NaN) - desired.values[c][i]) || 0)) * 1000;
        });
        const most = Math.max(0.05, ...apart);
        row_of(`off what was asked for, at most ${amount(most)} mrad`, "loop", [filled(desired.at.map((s, i) => [s, 1 - apart[i] / most]))],
          (s) => `${amount(apart[desired.place(s)])} mrad`, "Largest deviation of a joint from what the controller asked for");
      }
      lateness?.columns.forEach((name, c) => {
        const most = Math.max(1, ...lateness.values[c]);
        row_of(`${name} loop late, at most ${duration(most)}`, "loop", [filled(steps(lateness.at, lateness.values[c], (v) => 1 - Math.max(0, v) / most))],
          (s) => duration(lateness.values[c][lateness.place(s)]), `How late the ${name} loop began, over time`);
      });
      if (film.lanes) {
        const { begin, bin, lanes, cpus } = film.lanes;
        const full = Math.min(100, 10 * Math.ceil(Math.max(10, ...lanes.flatMap((lane) => lane.shares)) / 10));
        charts.append(made("p", { className: "film-legend" }, made("span", { className: "faint" },
          `The scheduler, in parts of ${Math.round(1000 * bin)} ms: share of the time on CPU ${cpus.join(", ")}, up to ${full} %`)));
        for (const lane of lanes) {
          const bars = lane.shares.map((share, i) => [begin + i * bin, share]).filter(([s, share]) => share > 0 && s < end && s + bin > 0)
            .map(([s, share]) => `M${s.toFixed(3)} 1V${(1 - Math.min(1, share / full)).toFixed(2)}H${(s + bin).toFixed(3)}V1Z`).join("");
          row_of(lane.name, "lane", [drawn("path", { d: bars || "M0 1", class: `bars ${lane.kind}` })],
            (s) => `${lane.shares[Math.floor((s - begin) / bin)] ?? 0} %`, `${lane.name}: share of the CPU over time`);
        }
      }
      const every = nice(end / 6);
      const axis = made("div", { className: "film-axis", "aria-hidden": "true" });
      for (let s = 0; s <= end + 1e-9; s += every) {
        const tick = made("span", {}, `${Number(s.toFixed(3))}${s === 0 ? " s" : ""}`);
        tick.style.left = `${(100 * s) / end}%`;
        axis.append(tick);
      }
      charts.append(axis);
      const marks = made("div", { className: "film-marks", "aria-hidden": "true" });
      for (const [s, , failed] of film.moments) {
        const mark = made("i", { className: failed ? "bad" : "" });
        mark.style.left = `${(100 * Math.min(end, Math.max(0, s))) / end}%`;
        marks.append(mark);
      }
      charts.append(marks, cursor);
      moments.replaceChildren(...film.moments.map(([s, words, failed]) => made("li", { className: failed ? "bad" : "" },
        made("button", { type: "button", onclick: () => { pause(); show(s); } }, said(Math.min(end, s))), ` ${failed ? "✖ " : ""}${words}`)));
    }
    const prefix = (names) => names.reduce((found, name) => {
      while (!name.startsWith(found)) found = found.slice(0, -1);
      return found;
    }).replace(/[^_/]*$/, "");
    const steps = (at, values, y) => at.flatMap((s, i) => [[i ? at[i - 1] : s, y(values[i])], [s, y(values[i])]]);
    const amount = (value) => (value >= 100 ? value.toFixed(0) : value >= 1 || value < 0.05 ? value.toFixed(1) : value.toPrecision(2));
    const duration = (us) => (us >= 1000 ? `${amount(us / 1000)} ms` : `${Math.round(us)} µs`);
    function nice(least) {
      const size = 10 ** Math.floor(Math.log10(least));
      return size * [1, 2, 5, 10].find((n) => n * size >= least);
    }

    const point_at = (event) => {
      const place = charts.getBoundingClientRect();
      pause();
      show(((event.clientX - place.left) / place.width) * end);
    };
    charts.addEventListener("pointerdown", (event) => { charts.setPointerCapture(event.pointerId); point_at(event); });
    charts.addEventListener("pointermove", (event) => { if (charts.hasPointerCapture(event.pointerId)) point_at(event); });

    pause();
    read(film);
    // A still page shows what became of it: a failure where it happened, else the goal.
    now = Math.min(end, failure() ? failure()[0] : end);
    draw();
    new ResizeObserver(later).observe(stage);
    new MutationObserver(later).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", later);
    addEventListener("beforeprint", draw);
    return {
      show: (s) => { pause(); show(s); draw(); },
      end: () => end,
      // What was recorded since; who looks at the end goes on to look at the end.
      update(fresh) {
        const at_end = now >= end - 1e-6;
        read(fresh);
        if (at_end) now = end;
        draw();
      },
    };
  }

  return Film;
})();

// Those of a report, each when it comes into sight.
window.perflabFilms = () => {
  "use strict";
  const shared = document.getElementById("film-scenes");
  if (!shared) return;
  let scenes = null;
  const begin = (figure) => {
    if (figure.perflabFilm) return;
    scenes ??= JSON.parse(perflabUnpack(shared.textContent));
    const found = JSON.parse(perflabUnpack(figure.querySelector(".film-data").textContent));
    figure.perflabFilm = perflabFilm(figure.querySelector(".film-player"), scenes[found.scene], found.film, found.about);
    figure.classList.add("playable");
  };
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) begin(entry.target);
  }, { rootMargin: "300px" });
  for (const figure of document.querySelectorAll("figure.film")) {
    watch.observe(figure);
    figure.addEventListener("film", () => begin(figure));
  }
  addEventListener("beforeprint", () => document.querySelectorAll("figure.film").forEach(begin));
};
