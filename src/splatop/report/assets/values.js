"use strict";
// Shared by all scripts of the page: its data, numbers as text, unpacking.

const report = JSON.parse(document.getElementById("report-data").textContent);
const byId = (id) => document.getElementById(id);
const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
const superscript = (n) => String(n).replace(/[-0-9]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);

function show(value, digits = 3) {
  if (value === null || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const power = Math.floor(Math.log10(Math.abs(value)));
  if (power >= -3 && power < 5) return String(Number(value.toPrecision(digits))).replace("-", "−");
  return `${(value / 10 ** power).toFixed(digits - 1)} × 10${superscript(power)}`.replace("-", "−");
}

// The index of the number nearest to a value in an ascending list.
function nearest(sorted, value) {
  let low = 0, high = sorted.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle; else high = middle;
  }
  return Math.abs(sorted[low] - value) <= Math.abs(sorted[high] - value) ? low : high;
}

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

async function inflate(text) {
  const stream = new Blob([bytes(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Bytes that were stored as differences along rows.
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
