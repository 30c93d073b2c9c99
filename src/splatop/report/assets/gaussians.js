// Gaussians as the ellipses in which their 1 sigma surfaces meet the plane that is shown.
// Positions and covariances are fractions of the box.

// The packed Gaussians of the frame nearest to one: where their geometry and amplitudes begin.
function gaussiansAt(g, frame, field, fields) {
  const slot = nearest(g.frames, frame);
  return {
    geometry: g.fixed ? 0 : slot,
    amplitude: (i) => (g.amplitude[(slot * fields + field) * g.count + i] - 128) / 127,
  };
}

// Centre and covariance in the plane; null if the ellipsoid does not reach it.
function slicedEllipse(center, packed, plane) {
  if (center.length === 2) return [center[0], center[1], packed[0], packed[1], packed[2]];
  const s = (i, j) => packed[[[0, 1, 2], [1, 3, 4], [2, 4, 5]][i][j]];
  const k = plane.across;
  let gap = plane.position - center[k];
  gap -= Math.round(gap);
  const left = 1 - (gap * gap) / s(k, k);
  if (left <= 0) return null;
  const along = (i, j) => left * (s(i, j) - (s(i, k) * s(j, k)) / s(k, k));
  const shift = (i) => center[i] + (s(i, k) / s(k, k)) * gap;
  const { a, b } = plane;
  return [shift(a), shift(b), along(a, a), along(a, b), along(b, b)];
}

// The box is periodic: an ellipse that leaves on one side comes in on the other.
function periodicImages(x, y, reach, width, height) {
  const found = [[0, 0]];
  const dx = x - reach < 0 ? width : x + reach > width ? -width : 0;
  const dy = y - reach < 0 ? height : y + reach > height ? -height : 0;
  if (dx) found.push([dx, 0]);
  if (dy) found.push([0, dy]);
  if (dx && dy) found.push([dx, dy]);
  return found;
}

// `plane` says which axes are shown (a to the right, b upwards), how many pixels of the array the
// panel and the box have along them, and, in 3D, across which axis and where the slice lies.
function drawGaussians(canvas, g, found, dims, plane) {
  const out = canvas.getContext("2d");
  const { width, height } = canvas;
  const entries = (dims * (dims + 1)) / 2;
  const wide = (plane.boxColumns / plane.columns) * width, high = (plane.boxRows / plane.rows) * height;
  out.save();
  for (let i = 0; i < g.count; i++) {
    const amplitude = found.amplitude(i), index = found.geometry * g.count + i;
    if (Math.abs(amplitude) < 0.04) continue;
    const center = g.center.subarray(index * dims, (index + 1) * dims);
    const cut = slicedEllipse(center, g.covariance.subarray(index * entries, (index + 1) * entries), plane);
    if (!cut) continue;
    const [fx, fy, sxx, sxy, syy] = cut;
    // Grid points are drawn at the centres of pixels, hence half a pixel more.
    const x = fx * wide + 0.5 * (width / plane.columns), y = height - fy * high - 0.5 * (height / plane.rows);
    const a = sxx * wide * wide, b = -sxy * wide * high, c = syy * high * high;
    const middle = (a + c) / 2, spread = Math.hypot((a - c) / 2, b);
    const major = Math.sqrt(middle + spread), minor = Math.sqrt(Math.max(middle - spread, 0));
    const angle = 0.5 * Math.atan2(2 * b, a - c);
    out.globalAlpha = 0.8 * Math.abs(amplitude) ** 0.8;
    out.setLineDash(amplitude > 0 ? [] : [3, 3]);
    for (const [stroke, size] of [["#ffffff66", 2.4], ["#000", 1.1]]) {
      out.strokeStyle = stroke;
      out.lineWidth = size;
      for (const [dx, dy] of periodicImages(x, y, major, width, height)) {
        out.beginPath();
        out.ellipse(x + dx, y + dy, major, minor, angle, 0, 2 * Math.PI);
        out.stroke();
      }
    }
  }
  out.restore();
}
