// Small plots; the library comes only when there is something to plot.

let library = null;

function load() {
  library ??= import("./vendor/uPlot.esm.js")
    .then((module) => {
      const style = document.createElement("link");
      style.rel = "stylesheet";
      style.href = "static/vendor/uPlot.css";
      document.head.append(style);
      return module.default;
      // A browser whose language has an odd name cannot load it: then there are figures and no plots.
    })
    .catch(() => null);
  return library;
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export async function plot(card, points, label) {
  const Plot = await load();
  if (Plot === null) return;
  const data = [points.map((one) => one[0] / 1000), points.map((one) => one[1]), points.map((one) => one[2])];
  if (!card.plot) {
    const place = document.createElement("div");
    place.className = "plot";
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", label);
    card.append(place);
    card.plot = new Plot(
      {
        width: place.clientWidth || 220,
        height: 44,
        legend: { show: false },
        cursor: { show: false },
        select: { show: false },
        padding: [2, 0, 2, 0],
        axes: [{ show: false }, { show: false }],
        scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1)] } },
        series: [
          {},
          {
            stroke: () => colour("--accent"),
            width: 1.5,
            fill: () => colour("--accent-soft"),
            points: { show: false },
          },
          { stroke: () => colour("--mute"), width: 1.2, dash: [4, 3], points: { show: false } },
        ],
      },
      data,
      place,
    );
    return;
  }
  const { width } = card.plot;
  const place = card.lastChild;
  if (place.clientWidth && Math.abs(place.clientWidth - width) > 2)
    card.plot.setSize({ width: place.clientWidth, height: 44 });
  card.plot.setData(data);
}
