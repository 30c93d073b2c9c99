"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const $ = (id) => document.getElementById(id);
  const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
  const superscript = (n) => String(n).replace(/[-0-9]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);

  function show(value, digits = 3) {
    if (value === null || !Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    const power = Math.floor(Math.log10(Math.abs(value)));
    if (power >= -3 && power < 5) return String(Number(value.toPrecision(digits))).replace("-", "−");
    return `${(value / 10 ** power).toFixed(digits - 1)} × 10${superscript(power)}`.replace("-", "−");
  }

  // ---- curves: read values off with pointer or arrow keys ----

  const charts = {};

  function readable(element) {
    const spec = data.charts[element.dataset.chart];
    if (!spec) return;
    const svg = element.querySelector("svg");
    const tip = element.querySelector(".tip");
    const cursor = svg.querySelector(".cursor");
    const [left, , right] = spec.plot;
    const xs = spec.lines.reduce((all, line) => (line.x.length > all.length ? line.x : all), []);
    const scale = (v) => (spec.x.log ? Math.log10(v) : v);
    const place = (v) =>
      left + ((right - left) * (scale(v) - scale(spec.x.low))) / (scale(spec.x.high) - scale(spec.x.low));
    let at = -1;

    function hide() {
      at = -1;
      tip.hidden = true;
      cursor.setAttribute("visibility", "hidden");
    }

    function point(index) {
      at = clamp(index, 0, xs.length - 1);
      const x = xs[at], px = place(x);
      cursor.setAttribute("x1", px);
      cursor.setAttribute("x2", px);
      cursor.setAttribute("visibility", "visible");
      tip.replaceChildren();
      const head = document.createElement("b");
      head.textContent = `${(spec.x.label || "κ").split(" ")[0]} ${show(x, 4)}`;
      const table = document.createElement("table");
      for (const line of spec.lines) {
        const row = table.insertRow();
        row.insertCell().textContent = line.label;
        row.insertCell().textContent = show(line.y[nearest(line.x, x)]);
      }
      tip.append(head, table);
      tip.hidden = false;
      const share = px / spec.size[0], width = element.clientWidth;
      tip.style.left = share < 0.55 ? `${share * width + 12}px` : "auto";
      tip.style.right = share < 0.55 ? "auto" : `${(1 - share) * width + 12}px`;
    }

    element.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const px = ((event.clientX - box.left) / box.width) * spec.size[0];
      const share = clamp((px - left) / (right - left), 0, 1);
      const value = scale(spec.x.low) + share * (scale(spec.x.high) - scale(spec.x.low));
      point(nearest(xs, spec.x.log ? 10 ** value : value));
    });
    element.addEventListener("pointerleave", hide);
    element.addEventListener("blur", hide);
    element.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[event.key];
      if (event.key === "Escape") hide();
      if (!move) return;
      event.preventDefault();
      event.stopPropagation();
      point(at < 0 ? 0 : at + move);
    });
    charts[element.dataset.chart] = { svg, place, spec };
  }

  function nearest(sorted, value) {
    let low = 0, high = sorted.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (sorted[middle] <= value) low = middle; else high = middle;
    }
    return Math.abs(sorted[low] - value) <= Math.abs(sorted[high] - value) ? low : high;
  }

  document.querySelectorAll("[data-chart]").forEach(readable);

  // ---- the player ----

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

  async function inflate(text) {
    const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function undifferenced(text, row) {
    const codes = await inflate(text);
    for (let start = 0; start < codes.length; start += row)
      for (let i = start + 1; i < start + row; i++) codes[i] = (codes[i] + codes[i - 1]) & 255;
    return codes;
  }

  const floats = async (text) => new Float32Array((await inflate(text)).buffer);

  async function unpack(player) {
    const row = player.points[player.points.length - 1];
    player.reference = await undifferenced(player.reference, row);
    for (const model of player.models) {
      model.error = await undifferenced(model.error, row);
      const g = model.gaussians;
      if (!g) continue;
      g.center = await floats(g.center);
      g.covariance = await floats(g.covariance);
      g.amplitude = await undifferenced(g.amplitude, g.count);
    }
    for (const name in player.tables) player.tables[name] = bytes(player.tables[name]);
  }

  function start(player) {
    const { dims, points, cells, lengths, steps, scales, fields } = player;
    const volume = points.reduce((a, b) => a * b, 1);
    const AXES = ["x", "y", "z"];
    const state = { frame: 0, model: 0, field: 0, slice: dims === 3 ? points[2] >> 1 : 0, across: 2,
                    log: false, fitted: false, gaussians: false };
    const canvas = { reference: $("reference"), prediction: $("prediction"), error: $("error") };
    const scratch = document.createElement("canvas");

    // Errors as values: codes 1 to 255 stand for signed squares, 0 for what is not finite.
    const square = new Float64Array(256);
    for (let code = 1; code < 256; code++) {
      const share = (code - 128) / 127;
      square[code] = Math.sign(share) * share * share;
    }

    // What the panels show of a frame: columns by rows, and where a pixel lies in the array.
    function view() {
      if (dims === 1) return { columns: points[0], rows: steps.length, names: ["x", "t"],
                               lengths: [lengths[0], steps[steps.length - 1] * player.dt] };
      const [a, b] = dims === 2 ? [0, 1] : [0, 1, 2].filter((axis) => axis !== state.across);
      const stride = points.map((_, axis) => points.slice(axis + 1).reduce((p, q) => p * q, 1));
      return { columns: points[a], rows: points[b], a, b, names: [AXES[a], AXES[b]],
               lengths: [lengths[a], lengths[b]], across: stride[a], up: stride[b],
               offset: dims === 3 ? state.slice * stride[state.across] : 0 };
    }

    // Values of the reference by their codes: fields of both signs are stored as errors are.
    const decoded = scales.map(({ low, high, signed }) => signed
      ? square.map((share) => share * high)
      : Float64Array.from({ length: 256 }, (_, code) => low + (code / 255) * (high - low)));

    // Colour limits of the field and of the error: fixed, or those of the frame that is shown.
    function limits() {
      const { low, high, signed } = scales[state.field], model = player.models[state.model];
      const fixed = { low, high, error: model.limits[state.field] };
      if (!state.fitted || dims === 1) return fixed;
      const from = start(state.frame), values = decoded[state.field];
      let least = Infinity, greatest = -Infinity, error = 0;
      for (let i = from; i < from + volume; i++) {
        least = Math.min(least, values[player.reference[i]]);
        greatest = Math.max(greatest, values[player.reference[i]]);
        if (model.error[i]) error = Math.max(error, Math.abs(square[model.error[i]]));
      }
      if (greatest <= least) return fixed;
      const reach = Math.max(-least, greatest);
      return { low: signed ? -reach : least, high: signed ? reach : greatest, error: error * fixed.error || fixed.error };
    }

    const start = (frame) => (frame * fields.length + state.field) * volume;

    function paint(target, v, colour) {
      scratch.width = v.columns;
      scratch.height = v.rows;
      const context = scratch.getContext("2d");
      const image = context.createImageData(v.columns, v.rows);
      for (let row = 0; row < v.rows; row++)
        for (let column = 0; column < v.columns; column++) {
          const at = dims === 1 ? start(row) + column
            : start(state.frame) + v.offset + column * v.across + row * v.up;
          colour(at, image.data, 4 * ((v.rows - 1 - row) * v.columns + column));
        }
      context.putImageData(image, 0, 0);
      const ratio = dims === 1 ? 1.25 : clamp(v.lengths[0] / v.lengths[1], 0.5, 2.5);
      const width = 480, height = Math.round(480 / ratio);
      if (target.width !== width || target.height !== height) { target.width = width; target.height = height; }
      const out = target.getContext("2d");
      out.imageSmoothingEnabled = true;
      out.imageSmoothingQuality = "high";
      out.drawImage(scratch, 0, 0, width, height);
      if (dims === 1) {
        const y = height - ((state.frame + 0.5) / steps.length) * height;
        out.fillStyle = "#000a";
        out.fillRect(0, y - 1.5, width, 3);
        out.fillStyle = "#fff";
        out.fillRect(0, y - 0.5, width, 1);
      }
    }

    function put(table, share, pixels, at) {
      const index = 3 * clamp(Math.round(255 * share), 0, 255);
      pixels[at] = table[index];
      pixels[at + 1] = table[index + 1];
      pixels[at + 2] = table[index + 2];
      pixels[at + 3] = 255;
    }

    function grey(pixels, at) {
      pixels[at] = pixels[at + 1] = pixels[at + 2] = 128;
      pixels[at + 3] = 255;
    }

    const fieldTable = () => player.tables[scales[state.field].signed ? "diverging" : "sequential"];

    // ---- Gaussians as the ellipses in which their 1 sigma surfaces meet the plane that is shown ----

    function gaussians(v) {
      const g = player.models[state.model].gaussians;
      if (!g || !state.gaussians || dims === 1) return;
      const slot = g.frames.reduce((best, frame, i) =>
        Math.abs(frame - state.frame) < Math.abs(g.frames[best] - state.frame) ? i : best, 0);
      const entries = (dims * (dims + 1)) / 2;
      const geometry = g.fixed ? 0 : slot;
      const out = canvas.prediction.getContext("2d");
      const { width, height } = canvas.prediction;
      const wide = (cells[v.a] / v.columns) * width, high = (cells[v.b] / v.rows) * height;
      out.save();
      for (let i = 0; i < g.count; i++) {
        const amplitude = (g.amplitude[(slot * fields.length + state.field) * g.count + i] - 128) / 127;
        if (Math.abs(amplitude) < 0.02) continue;
        const center = g.center.subarray((geometry * g.count + i) * dims, (geometry * g.count + i + 1) * dims);
        const packed = g.covariance.subarray((geometry * g.count + i) * entries, (geometry * g.count + i + 1) * entries);
        const cut = slicedEllipse(center, packed, v);
        if (!cut) continue;
        const [fx, fy, sxx, sxy, syy] = cut;
        // Pixel centres are grid points, hence half a pixel more.
        const x = fx * wide + 0.5 * (width / v.columns), y = height - fy * high - 0.5 * (height / v.rows);
        const a = sxx * wide * wide, b = -sxy * wide * high, c = syy * high * high;
        const middle = (a + c) / 2, spread = Math.hypot((a - c) / 2, b);
        const angle = 0.5 * Math.atan2(2 * b, a - c);
        out.globalAlpha = clamp(0.2 + 0.8 * Math.abs(amplitude), 0, 1);
        const major = Math.sqrt(middle + spread), minor = Math.sqrt(Math.max(middle - spread, 0));
        for (const [stroke, size] of [["#ffffffb0", 2.6], ["#111", 1.1]]) {
          out.setLineDash(amplitude > 0 ? [] : [3, 3]);
          out.strokeStyle = stroke;
          out.lineWidth = size;
          for (const [dx, dy] of images(x, y, major, width, height)) {
            out.beginPath();
            out.ellipse(x + dx, y + dy, major, minor, angle, 0, 2 * Math.PI);
            out.stroke();
          }
        }
      }
      out.restore();
    }

    // The box is periodic: an ellipse that leaves on one side comes in on the other.
    function images(x, y, reach, width, height) {
      const found = [[0, 0]];
      const dx = x - reach < 0 ? width : x + reach > width ? -width : 0;
      const dy = y - reach < 0 ? height : y + reach > height ? -height : 0;
      if (dx) found.push([dx, 0]);
      if (dy) found.push([0, dy]);
      if (dx && dy) found.push([dx, dy]);
      return found;
    }

    function slicedEllipse(center, packed, v) {
      if (dims === 2) return [center[0], center[1], packed[0], packed[1], packed[2]];
      const s = (i, j) => packed[[[0, 1, 2], [1, 3, 4], [2, 4, 5]][i][j]];
      const k = state.across;
      let gap = state.slice / cells[k] - center[k];
      gap -= Math.round(gap);
      const left = 1 - (gap * gap) / s(k, k);
      if (left <= 0) return null;
      const along = (i, j) => left * (s(i, j) - (s(i, k) * s(j, k)) / s(k, k));
      const shift = (i) => center[i] + (s(i, k) / s(k, k)) * gap;
      return [shift(v.a), shift(v.b), along(v.a, v.a), along(v.a, v.b), along(v.b, v.b)];
    }

    // ---- labels around the panels ----

    function bar(id, table, labels) {
      const target = $(id), context = target.getContext("2d");
      const image = context.createImageData(256, 1);
      for (let i = 0; i < 256; i++) put(table, i / 255, image.data, 4 * i);
      context.putImageData(image, 0, 0);
      const spans = $(`${id}-labels`).children;
      labels.forEach((text, i) => { spans[i].textContent = text; });
    }

    function labels(v, scale) {
      const model = player.models[state.model], limit = scale.error;
      bar("field-bar", fieldTable(),
        [show(scale.low), show((scale.low + scale.high) / 2), show(scale.high)]);
      if (state.log)
        bar("error-bar", player.tables.sequential, [show(limit * 1e-4), show(limit * 1e-2), show(limit)]);
      else bar("error-bar", player.tables.error, [show(-limit), "0", show(limit)]);
      for (const id in canvas) {
        const figure = canvas[id].closest("figure");
        figure.querySelector(".what").textContent =
          id === "reference" ? fields[state.field] : id === "prediction" ? model.label
            : state.log ? "|prediction − reference|" : "prediction − reference";
        const [, xName, xEnd] = figure.querySelector(".axis-x").children;
        const [yEnd, yName] = figure.querySelector(".axis-y").children;
        xName.textContent = v.names[0];
        yName.textContent = v.names[1];
        xEnd.textContent = show(v.lengths[0]);
        yEnd.textContent = show(v.lengths[1]);
        canvas[id].setAttribute("aria-label",
          `${id} of ${fields[state.field]} at step ${steps[state.frame]}`);
      }
      const step = steps[state.frame], error = model.rl2[state.frame];
      const said = `t = ${show(step * player.dt, 4)}  (step ${step} of ${steps[steps.length - 1]}), ` +
        (error === null ? "diverged" : `rL2 = ${show(error)}`);
      $("now").textContent = said;
      $("time").setAttribute("aria-valuetext", said);
      if (dims === 3)
        $("slice-at").textContent = `${AXES[state.across]} = ${show((state.slice / cells[state.across]) * lengths[state.across])}`;
      const chart = charts.error;
      if (chart) {
        const now = chart.svg.querySelector(".now"), px = chart.place(Math.max(step, 1));
        now.setAttribute("x1", px);
        now.setAttribute("x2", px);
        now.setAttribute("visibility", "visible");
      }
    }

    // ---- 1D: the profile at the chosen time ----

    function profile(limit) {
      const target = $("profile");
      if (!target) return;
      const out = target.getContext("2d"), { width, height } = target;
      const colours = getComputedStyle(document.documentElement);
      const colour = (name) => colours.getPropertyValue(name).trim();
      const scale = scales[state.field], model = player.models[state.model];
      const low = scale.low - 0.05 * (scale.high - scale.low), high = scale.high + 0.05 * (scale.high - scale.low);
      const bottom = height - 22, left = 44;
      const px = (i) => left + (i / cells[0]) * (width - left - 6);
      const py = (v) => 6 + (1 - (v - low) / (high - low)) * (bottom - 6);
      out.clearRect(0, 0, width, height);
      out.font = "13px system-ui, sans-serif";
      out.strokeStyle = colour("--rule");
      out.fillStyle = colour("--muted");
      out.lineWidth = 1;
      for (const v of [scale.low, (scale.low + scale.high) / 2, scale.high]) {
        out.beginPath(); out.moveTo(left, py(v)); out.lineTo(width - 6, py(v)); out.stroke();
        out.textAlign = "right"; out.fillText(show(v), left - 7, py(v) + 4);
      }
      out.textAlign = "left"; out.fillText("0", left, height - 5);
      out.textAlign = "center"; out.fillText("x", (left + width) / 2, height - 5);
      out.textAlign = "right"; out.fillText(show(lengths[0]), width - 6, height - 5);
      const at = start(state.frame);
      const value = (i) => decoded[state.field][player.reference[at + i]];
      const curve = (f, stroke, dash, size) => {
        out.beginPath();
        let down = false;
        for (let i = 0; i < points[0]; i++) {
          const v = f(i);
          if (!Number.isFinite(v)) { down = false; continue; }
          const y = py(clamp(v, low, high));
          if (down) out.lineTo(px(i), y); else out.moveTo(px(i), y);
          down = true;
        }
        out.setLineDash(dash); out.strokeStyle = stroke; out.lineWidth = size; out.stroke(); out.setLineDash([]);
      };
      curve(value, colour("--reference"), [], 2);
      curve((i) => (model.error[at + i] === 0 ? NaN : value(i) + square[model.error[at + i]] * limit),
        colour("--s0"), [7, 5], 2.4);
      const g = model.gaussians;
      if (!g || !state.gaussians) return;
      const slot = g.frames.reduce((best, frame, i) =>
        Math.abs(frame - state.frame) < Math.abs(g.frames[best] - state.frame) ? i : best, 0);
      const geometry = g.fixed ? 0 : slot;
      out.strokeStyle = colour("--s1");
      for (let i = 0; i < g.count; i++) {
        const amplitude = (g.amplitude[(slot * fields.length + state.field) * g.count + i] - 128) / 127;
        const mean = g.center[geometry * g.count + i] * cells[0];
        const sigma = Math.sqrt(g.covariance[geometry * g.count + i]) * cells[0];
        const y = bottom - 6 - 4 * (i % 6);
        out.globalAlpha = clamp(0.15 + 0.85 * Math.abs(amplitude), 0, 1);
        out.lineWidth = 2;
        out.beginPath(); out.moveTo(px(mean - sigma), y); out.lineTo(px(mean + sigma), y); out.stroke();
      }
      out.globalAlpha = 1;
    }

    function draw() {
      const v = view(), scale = limits(), model = player.models[state.model];
      const values = decoded[state.field], limit = model.limits[state.field];
      const share = (value) => (value - scale.low) / (scale.high - scale.low);
      const table = fieldTable(), errors = player.tables[state.log ? "sequential" : "error"];
      paint(canvas.reference, v, (at, pixels, to) => put(table, share(values[player.reference[at]]), pixels, to));
      paint(canvas.prediction, v, (at, pixels, to) => {
        const code = model.error[at];
        if (code === 0) return grey(pixels, to);
        put(table, share(values[player.reference[at]] + square[code] * limit), pixels, to);
      });
      paint(canvas.error, v, (at, pixels, to) => {
        const code = model.error[at];
        if (code === 0) return grey(pixels, to);
        const part = (square[code] * limit) / scale.error;
        put(errors, state.log ? 1 + Math.log10(Math.max(Math.abs(part), 1e-4)) / 4 : 0.5 + part / 2, pixels, to);
      });
      gaussians(v);
      labels(v, scale);
      profile(limit);
    }

    // ---- controls ----

    const time = $("time"), play = $("play");
    let timer = null;

    function go(frame) {
      state.frame = clamp(frame, 0, steps.length - 1);
      time.value = state.frame;
      draw();
    }

    function pause() {
      clearInterval(timer);
      timer = null;
      play.textContent = "▶ Play";
      play.setAttribute("aria-pressed", "false");
    }

    function toggle() {
      if (timer) return pause();
      if (state.frame === steps.length - 1) go(0);
      play.textContent = "❚❚ Pause";
      play.setAttribute("aria-pressed", "true");
      timer = setInterval(() => {
        if (state.frame === steps.length - 1) pause(); else go(state.frame + 1);
      }, 110);
    }

    function listen(id, event, change) {
      const element = $(id);
      if (element) element.addEventListener(event, () => { change(element); draw(); });
    }

    play.addEventListener("click", toggle);
    time.addEventListener("input", () => { pause(); go(Number(time.value)); });
    listen("model", "change", (e) => { state.model = Number(e.value); });
    listen("field", "change", (e) => { state.field = Number(e.value); });
    listen("colours", "change", (e) => { state.fitted = e.value === "1"; });
    listen("scale", "change", (e) => { state.log = e.value === "1"; });
    listen("gaussians", "change", (e) => { state.gaussians = e.checked; });
    listen("slice", "input", (e) => { state.slice = Number(e.value); });
    listen("axis", "change", (e) => {
      state.across = 2 - Number(e.value);
      state.slice = points[state.across] >> 1;
      $("slice").max = points[state.across] - 1;
      $("slice").value = state.slice;
    });
    document.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, button, summary, a, [data-chart]")) return;
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (move) { event.preventDefault(); pause(); go(state.frame + move); }
      // Elsewhere the space bar scrolls the page.
      if (event.key === " " && event.target.closest(".player")) { event.preventDefault(); toggle(); }
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

    // On paper nothing moves, and the last frame tells most.
    window.addEventListener("beforeprint", () => { pause(); go(steps.length - 1); });
    draw();
    document.querySelector(".player").dataset.ready = "yes";
  }

  if (data.player) {
    if (typeof DecompressionStream === "undefined") {
      $("now").textContent = "This browser is too old for the player: use one of 2023 or later.";
    } else unpack(data.player).then(() => start(data.player));
  }
})();
