document.querySelectorAll("[data-chart]").forEach(readable);

if (report.player) {
  if (typeof DecompressionStream === "undefined")
    byId("now").textContent = "This browser is too old for the player: use one of 2023 or later.";
  else unpack(report.player).then(() => startPlayer(report.player));
}
