// The profile of a 1D field at one time: reference, prediction, Gaussians as bars of one sigma.

function drawProfile(canvas, { points, cells, begin, length, scale, reference, prediction, bars }) {
  const out = canvas.getContext("2d"), { width, height } = canvas;
  const theme = getComputedStyle(document.documentElement);
  const colour = (name) => theme.getPropertyValue(name).trim();
  const margin = 0.05 * (scale.high - scale.low);
  const low = scale.low - margin, high = scale.high + margin;
  const left = 44, right = width - 6, top = 26, bottom = height - 44;
  const px = (i) => left + (i / cells) * (right - left);
  const py = (v) => top + (1 - (v - low) / (high - low)) * (bottom - top);

  function curve(value, stroke, dash, size) {
    out.beginPath();
    let down = false;
    for (let i = 0; i < points; i++) {
      const v = value(i);
      if (!Number.isFinite(v)) { down = false; continue; }
      const y = py(clamp(v, low, high));
      if (down) out.lineTo(px(i), y); else out.moveTo(px(i), y);
      down = true;
    }
    out.setLineDash(dash);
    out.strokeStyle = stroke;
    out.lineWidth = size;
    out.stroke();
    out.setLineDash([]);
  }

  function label(text, x, y, align) {
    out.textAlign = align;
    out.fillText(text, x, y);
  }

  out.clearRect(0, 0, width, height);
  out.font = "13px system-ui, sans-serif";
  out.strokeStyle = colour("--rule");
  out.fillStyle = colour("--muted");
  out.lineWidth = 1;
  for (const v of [scale.low, (scale.low + scale.high) / 2, scale.high]) {
    out.beginPath();
    out.moveTo(left, py(v));
    out.lineTo(right, py(v));
    out.stroke();
    label(show(v), left - 7, py(v) + 4, "right");
  }
  label(show(begin), left, height - 5, "left");
  label("x", (left + width) / 2, height - 5, "center");
  label(show(begin + length), right, height - 5, "right");
  curve(reference, colour("--reference"), [], 2);
  curve(prediction, colour("--s0"), [7, 5], 2.4);
  out.fillStyle = colour("--reference");
  label("reference", left + 8, 15, "left");
  out.fillStyle = colour("--s0");
  label("prediction, dashed", left + 90, 15, "left");

  out.save();
  out.beginPath();
  out.rect(left, 0, right - left, height);
  out.clip();
  out.strokeStyle = colour("--s1");
  out.lineWidth = 2;
  bars.forEach(({ mean, sigma, amplitude }, i) => {
    const y = bottom + 5 + 3.5 * (i % 5);
    out.globalAlpha = clamp(0.15 + 0.85 * Math.abs(amplitude), 0, 1);
    for (const shift of [-1, 0, 1]) {  // periodic
      out.beginPath();
      out.moveTo(px((mean - sigma + shift) * cells), y);
      out.lineTo(px((mean + sigma + shift) * cells), y);
      out.stroke();
    }
  });
  out.restore();
}
