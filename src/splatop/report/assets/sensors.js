// The page about sensors: one picture for each frame, chosen by a slider.

document.querySelectorAll("[data-chart]").forEach(readable);

document.querySelectorAll("[data-frames]").forEach((player) => {
  const pictures = player.querySelectorAll("figure");
  const slider = player.querySelector("input");
  slider.addEventListener("input", () =>
    pictures.forEach((picture, index) => (picture.hidden = index !== Number(slider.value))));
});
