// Curves are drawn already; here values are read off them with the pointer or the arrow keys.

const curves = {};

function readable(element) {
  const spec = report.charts[element.dataset.chart];
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
    const head = document.createElement("b");
    head.textContent = `${spec.x.label ? spec.x.label.split(" ")[0] : "wavenumber"} ${show(x, 4)}`;
    const table = document.createElement("table");
    for (const line of spec.lines) {
      const row = table.insertRow();
      row.insertCell().textContent = line.label;
      row.insertCell().textContent = show(line.y[nearest(line.x, x)]);
    }
    tip.replaceChildren(head, table);
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
    point(at < 0 ? 0 : at + move);
  });
  curves[element.dataset.chart] = {
    follow(x) {
      const now = svg.querySelector(".now"), px = place(clamp(x, spec.x.low, spec.x.high));
      now.setAttribute("x1", px);
      now.setAttribute("x2", px);
      now.setAttribute("visibility", "visible");
    },
  };
}
