// Charts of the last hour, one for each number, with a common cursor.
import { h } from "./dom.js";
import { amount } from "./words.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const TONES = { "messages": "--accent", "bytes": "--accent", "missed": "--warn", "lost for good": "--bad", "NAKs": "--warn" };

function drawn(box, width) {
  const { series } = box.given;
  const stroke = colour(TONES[series.title] || "--accent");
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  const first = () => box.given.times[0], last = () => box.given.times.at(-1);
  return new uPlot({
    width, height: 120, legend: { show: false }, padding: [8, 4, 0, 0],
    cursor: { sync: { key: "hour" }, y: false, points: { size: 6 } },
    scales: {
      x: { range: () => [Math.min(first(), last() - 120), last()] },
      y: { range: (chart, low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      { ...axis, size: 26, values: (chart, splits) => splits.map((each) => new Date(each * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(last() - first() < 600 ? { second: "2-digit" } : {}) })) },
      { ...axis, size: 44, values: (chart, splits) => splits.map((each) => amount(each)) },
    ],
    series: [{}, { label: series.title, stroke, width: 1.6, fill: stroke + "1f", points: { show: false }, spanGaps: false }],
    hooks: { setCursor: [(chart) => { const at = chart.cursor.idx; box.told(at === null || at === undefined ? null : at); }] },
  }, [box.given.times, series.values], box);
}

// Elements whose charts are drawn, and kept, by hung().
export function charts(history) {
  if (!history || !history.series.length || history.t.length < 2) return h("p", { class: "empty" }, "The history begins a few seconds after the first records.");
  return h("div", { class: "charts" }, history.series.map((series) => {
    const known = series.values.filter((each) => each !== null), now = known[known.length - 1];
    const box = h("div", { class: "canvas", "data-own": "", role: "img", "aria-label": `${series.title} of the last hour: now ${amount(now)}, at most ${amount(Math.max(...known))} ${series.unit}` });
    box.given = { times: history.t, series };
    return h("div", { class: "chart", "data-key": series.title }, h("h3", {}, series.title, h("span", { "data-own": "" })), box);
  }));
}

// Draw what charts() has asked for; redraw what has other numbers or another width.
export function hung(root, again = false) {
  for (const box of root.querySelectorAll(".canvas")) {
    const width = Math.floor(box.clientWidth), said = box.parentNode.querySelector("h3 span");
    if (!box.given || width < 40) continue;
    box.told = (at) => {
      const { times, series } = box.given;
      const known = at === null ? series.values.filter((each) => each !== null).at(-1) : series.values[at];
      const when = at === null ? "" : " at " + new Date(times[at] * 1000).toLocaleTimeString("en-GB");
      said.textContent = known === undefined || known === null ? "–" : `${amount(known)}${series.unit && " " + series.unit}${when}`;
    };
    if (box.chart && !again && box.chart.width === width) {
      if (box.last === box.given.series) continue;
      box.chart.setData([box.given.times, box.given.series.values]);
    } else {
      box.chart?.destroy();
      box.chart = drawn(box, width);
    }
    box.last = box.given.series;
    box.told(null);
  }
}
