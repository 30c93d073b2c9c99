// The player: reference, prediction and error of one trajectory, frame by frame.

function startPlayer(player) {
  const { dims, points, cells, lengths, origin, steps, scales, fields } = player;
  const AXES = ["x", "y", "z"];
  const volume = points.reduce((a, b) => a * b, 1);
  const strides = points.map((_, axis) => points.slice(axis + 1).reduce((a, b) => a * b, 1));
  const canvas = { reference: byId("reference"), prediction: byId("prediction"), error: byId("error") };
  const scratch = document.createElement("canvas");
  const state = { frame: 0, model: 0, field: 0, across: 2, slice: dims === 3 ? points[2] >> 1 : 0,
                  log: false, fitted: false, gaussians: false };
  const model = () => player.models[state.model];

  // ---- values ----

  // Codes 1 to 255 stand for signed squares, 0 for what is not finite.
  const square = (code) => Math.sign(code - 128) * ((code - 128) / 127) ** 2;
  const start = (frame) => (frame * fields.length + state.field) * volume;

  // Every frame was quantised between its own extremes.
  function reference(frame, at) {
    const [low, high] = player.ranges[frame][state.field];
    return low + (player.reference[at] / 255) * (high - low);
  }

  function error(frame, at) {
    const code = model().error[at];
    return code === 0 ? NaN : square(code) * model().limits[frame][state.field];
  }

  // Colour limits of the field and of the error: fixed, or those of the frame that is shown.
  function limits() {
    const { low, high, signed } = scales[state.field];
    const errors = model().limits.map((frame) => frame[state.field]);
    const fixed = { low, high, error: Math.max(...errors) || 1e-12 * (high - low) };
    if (!state.fitted) return fixed;
    const [least, greatest] = player.ranges[state.frame][state.field];
    if (greatest <= least) return fixed;
    const reach = Math.max(-least, greatest);
    return { low: signed ? -reach : least, high: signed ? reach : greatest,
             error: errors[state.frame] || fixed.error };
  }

  // ---- pictures ----

  // What the panels show: columns by rows, and where a pixel lies in the array of a frame.
  function view() {
    if (dims === 1) return { columns: points[0], rows: steps.length, names: ["x", "t"],
                             begins: [origin[0], 0],
                             lengths: [lengths[0], steps[steps.length - 1] * player.dt] };
    const [a, b] = dims === 2 ? [0, 1] : [0, 1, 2].filter((axis) => axis !== state.across);
    return { a, b, columns: points[a], rows: points[b], boxColumns: cells[a], boxRows: cells[b],
             names: [AXES[a], AXES[b]], begins: [origin[a], origin[b]], lengths: [lengths[a], lengths[b]],
             across: state.across, position: state.slice / cells[state.across],
             offset: dims === 3 ? state.slice * strides[state.across] : 0 };
  }

  function put(table, share, pixels, at) {
    if (Number.isNaN(share)) {  // what is not finite is grey
      pixels.fill(128, at, at + 3);
    } else {
      const index = 3 * clamp(Math.round(255 * share), 0, 255);
      for (let c = 0; c < 3; c++) pixels[at + c] = table[index + c];
    }
    pixels[at + 3] = 255;
  }

  function paint(target, v, table, share) {
    scratch.width = v.columns;
    scratch.height = v.rows;
    const context = scratch.getContext("2d");
    const image = context.createImageData(v.columns, v.rows);
    for (let row = 0; row < v.rows; row++)
      for (let column = 0; column < v.columns; column++) {
        const frame = dims === 1 ? row : state.frame;
        const inside = dims === 1 ? column : v.offset + column * strides[v.a] + row * strides[v.b];
        const to = 4 * ((v.rows - 1 - row) * v.columns + column);
        put(table, share(frame, start(frame) + inside), image.data, to);
      }
    context.putImageData(image, 0, 0);
    const ratio = dims === 1 ? 1.25 : clamp(v.lengths[0] / v.lengths[1], 0.5, 2.5);
    const width = 480, height = Math.round(480 / ratio);
    if (target.width !== width || target.height !== height) Object.assign(target, { width, height });
    const out = target.getContext("2d");
    out.imageSmoothingQuality = "high";
    out.drawImage(scratch, 0, 0, width, height);
    if (dims > 1) return;
    const y = height - ((state.frame + 0.5) / steps.length) * height;
    out.fillStyle = "#000a";
    out.fillRect(0, y - 1.5, width, 3);
    out.fillStyle = "#fff";
    out.fillRect(0, y - 0.5, width, 1);
  }

  function draw() {
    const v = view(), scale = limits();
    const colours = player.tables[scales[state.field].signed ? "diverging" : "sequential"];
    const errorColours = player.tables[state.log ? "sequential" : "error"];
    const share = (value) => (value - scale.low) / (scale.high - scale.low);
    const decades = (part) => 1 + Math.log10(clamp(Math.abs(part), 1e-4, 1)) / 4;
    paint(canvas.reference, v, colours, (frame, at) => share(reference(frame, at)));
    paint(canvas.prediction, v, colours, (frame, at) => share(reference(frame, at) + error(frame, at)));
    paint(canvas.error, v, errorColours, (frame, at) => {
      const part = error(frame, at) / scale.error;
      return state.log ? decades(part) : 0.5 + part / 2;
    });
    const g = state.gaussians ? model().gaussians : null;
    const found = g && gaussiansAt(g, state.frame, state.field, fields.length);
    if (g && dims > 1) drawGaussians(canvas.prediction, g, found, dims, v);
    if (dims === 1) profile(scale, g, found);
    bar("field-bar", colours, [scale.low, (scale.low + scale.high) / 2, scale.high]);
    bar("error-bar", errorColours, state.log
      ? [1e-4 * scale.error, 1e-2 * scale.error, scale.error] : [-scale.error, 0, scale.error]);
    label(v);
  }

  function profile(scale, g, found) {
    const at = start(state.frame);
    const bars = g ? Array.from({ length: g.count }, (_, i) => ({
      mean: g.center[found.geometry * g.count + i],
      sigma: Math.sqrt(g.covariance[found.geometry * g.count + i]),
      amplitude: found.amplitude(i),
    })) : [];
    drawProfile(byId("profile"), {
      points: points[0], cells: cells[0], begin: origin[0], length: lengths[0], scale, bars,
      reference: (i) => reference(state.frame, at + i),
      prediction: (i) => reference(state.frame, at + i) + error(state.frame, at + i),
    });
  }

  // ---- words around the pictures ----

  function bar(id, table, ends) {
    const context = byId(id).getContext("2d");
    const image = context.createImageData(256, 1);
    for (let i = 0; i < 256; i++) put(table, i / 255, image.data, 4 * i);
    context.putImageData(image, 0, 0);
    const spans = byId(`${id}-labels`).children;
    ends.forEach((value, i) => { spans[i].textContent = show(value); });
  }

  function label(v) {
    const what = { reference: fields[state.field], prediction: model().label,
                   error: state.log ? "|prediction − reference|" : "prediction − reference" };
    for (const id in canvas) {
      const figure = canvas[id].closest("figure");
      figure.querySelector(".what").textContent = what[id];
      const [xStart, xName, xEnd] = figure.querySelector(".axis-x").children;
      const [yEnd, yName, yStart] = figure.querySelector(".axis-y").children;
      [xName.textContent, yName.textContent] = v.names;
      [xStart.textContent, yStart.textContent] = v.begins.map((begin) => show(begin));
      [xEnd.textContent, yEnd.textContent] = v.lengths.map((length, i) => show(v.begins[i] + length));
      canvas[id].setAttribute("aria-label", `${id} of ${fields[state.field]} at step ${steps[state.frame]}`);
    }
    const step = steps[state.frame], off = model().rl2[state.frame];
    const said = `t = ${show(step * player.dt, 4)}  (step ${step} of ${steps[steps.length - 1]}), ` +
      (off === null ? "diverged" : `rL2 = ${show(off)}`);
    byId("now").textContent = said;
    byId("time").setAttribute("aria-valuetext", said);
    if (dims === 3)
      byId("slice-at").textContent =
        `${AXES[state.across]} = ${show(origin[state.across] + v.position * lengths[state.across])}`;
    if (curves.error) curves.error.follow(step);
  }

  // ---- controls ----

  const time = byId("time"), play = byId("play");
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
    const element = byId(id);
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
    byId("slice").max = points[state.across] - 1;
    byId("slice").value = state.slice;
  });
  document.addEventListener("keydown", (event) => {
    const busy = "input, select, button, summary, a, [data-chart]";
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest(busy)) return;
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (move) { event.preventDefault(); pause(); go(state.frame + move); }
    // Elsewhere the space bar scrolls the page.
    if (event.key === " " && event.target.closest(".player")) { event.preventDefault(); toggle(); }
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("beforeprint", pause);

  // At the very start there is no error to see.
  go(Math.round((steps.length - 1) / 4));
  document.querySelector(".player").dataset.ready = "yes";
}
