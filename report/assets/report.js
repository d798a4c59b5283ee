(() => {
"use strict";
// The data are series on shared x values: "grid" holds x = 1/(1-p) of the
// percentiles; times are in nanoseconds.
const data = JSON.parse(document.getElementById("data").textContent);
const colours = 8, legendLimit = 24;
const several = data.reports.length > 1;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const charts = new Map();

function number(v, digits) {
  return v.toLocaleString("en-US", {maximumFractionDigits: digits, minimumFractionDigits: 0});
}

// significant prints v with about three digits.
function significant(v) {
  const a = Math.abs(v);
  return number(v, a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : 3);
}

function time(ns) {
  if (ns == null) return "";
  if (ns === 0) return "0";
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["μs", 1e3]]) {
    if (Math.abs(ns) >= size) return significant(ns / size) + " " + unit;
  }
  return significant(ns) + " ns";
}

function rate(v) {
  if (v == null) return "";
  if (v >= 1e6) return significant(v / 1e6) + " M/s";
  if (v >= 1e4) return significant(v / 1e3) + " k/s";
  return significant(v) + " /s";
}

// percentile labels x = 1/(1-p): 1 is 0 %, 10 is 90 %, 1000 is 99.9 %.
function percentile(x) {
  if (x == null) return "";
  return (100 * (1 - 1 / x)).toFixed(Math.max(0, Math.ceil(Math.log10(x) - 1e-9) - 2)) + " %";
}

function axis(format, extra) {
  return Object.assign({
    stroke: () => css("--soft"), grid: {stroke: () => css("--grid"), width: 1}, ticks: {stroke: () => css("--line"), width: 1},
    values: (u, splits) => splits.map(v => v == null ? "" : format(v)), font: "12px system-ui, sans-serif",
  }, extra);
}

function line(label, nth, report, format, extra) {
  const dash = report < data.reports.length - 1 ? [7, 4] : nth >= colours ? [2, 3] : undefined;
  return Object.assign({
    label, dash, width: 1.75, stroke: () => css("--c" + nth % colours), value: (u, v) => v == null ? "–" : format(v),
    points: {show: false}, spanGaps: false,
  }, extra);
}

function dots(label, nth, format, hollow) {
  return {
    label, stroke: () => css("--c" + nth % colours), value: (u, v) => v == null ? "–" : format(v), paths: () => null,
    points: {show: true, size: 7, width: 1.5, fill: () => hollow ? css("--bg") : css("--c" + nth % colours)},
  };
}

const zeroBased = (u, min, max) => [0, max > 0 ? max * 1.08 : 1];

// padded leaves room on both sides of a linear x, also where it is one value.
function padded(u, min, max) {
  if (min == null) return [0, 1];
  const room = max > min ? (max - min) * 0.03 : 0.5;
  return [min - room, max + room];
}

const height = () => window.innerWidth < 640 ? 240 : 300;

// draw replaces the chart in figure id; without any value it says so.
function draw(id, options, rows) {
  const place = document.querySelector("#" + id + " .plot");
  if (charts.has(id)) charts.get(id).destroy();
  charts.delete(id);
  place.textContent = "";
  if (!rows.slice(1).some(row => row.some(v => v != null))) {
    place.textContent = "Nothing was recorded.";
    return;
  }
  const u = new uPlot(Object.assign({
    width: Math.max(place.clientWidth, 200), height: height(), padding: [10, 36, 0, 4],
    cursor: {focus: {prox: 24}, y: false}, focus: {alpha: 0.3},
  }, options), rows, place);
  charts.set(id, u);
}

function join(tables) {
  return tables.length ? uPlot.join(tables) : [[]];
}

const hdrScales = {x: {time: false, distr: 3, range: (u, min, max) => min == null ? [1, 10] : [min, max > min ? max : min * 10]}, y: {distr: 3}};

function hdrAxes() {
  return [
    axis(percentile, {splits: u => powers(u.scales.x.min, u.scales.x.max), filter: (u, splits) => thinned(splits, u.bbox.width / devicePixelRatio)}),
    axis(time, {size: 66, filter: (u, splits) => splits.map(v => Math.abs(Math.log10(v) % 1) < 1e-6 ? v : null)}),
  ];
}

function powers(min, max) {
  const list = [];
  for (let x = 1; x <= max * 1.0001; x *= 10) if (x >= min * 0.9999) list.push(x);
  return list;
}

// thinned leaves out labels that would touch: the more nines, the wider.
function thinned(splits, width) {
  const step = Math.ceil(splits.length * (25 + 6 * splits.length) / Math.max(width, 1));
  return splits.map((v, i) => i % step ? null : v);
}

function onGrid(values) {
  return data.grid.map((x, i) => i < values.length ? values[i] : null);
}

// used cuts the grid where every series has ended.
function used(rows) {
  let n = 1;
  rows.forEach(row => row.forEach((v, i) => { if (v != null) n = Math.max(n, i + 1); }));
  return [data.grid.slice(0, n), ...rows.map(row => row.slice(0, n))];
}

function name(report, rest) {
  return several ? data.reports[report] + (rest ? ": " + rest : "") : rest;
}

function overview() {
  const series = [{label: "percentile", value: (u, v) => percentile(v)}], rows = [];
  const last = data.reports.length - 1; // one report: two would hide each other
  if (several) document.getElementById("which").textContent = "Of " + data.reports[last] + ". ";
  data.cases.forEach((c, nth) => {
    const run = c.runs[last], leg = run && run.legs.find(l => l.name === "end_to_end");
    if (!leg || rows.length >= legendLimit) return;
    series.push(line(c.short, nth, last, time));
    rows.push(onGrid(leg.ns));
  });
  draw("overview", {series, scales: hdrScales, axes: hdrAxes()}, used(rows));
}

function percentiles(c) {
  const series = [{label: "percentile", value: (u, v) => percentile(v)}], rows = [];
  const legs = [];
  c.runs.forEach((run, report) => run && run.legs.forEach(leg => {
    if (!legs.includes(leg.name)) legs.push(leg.name);
    series.push(line(name(report, leg.name.replaceAll("_", " ")), legs.indexOf(leg.name), report, time));
    rows.push(onGrid(leg.ns));
  }));
  draw("percentiles", {series, scales: hdrScales, axes: hdrAxes()}, used(rows));
}

const secondsAxis = {label: "seconds since the case's start", labelSize: 18, stroke: () => css("--soft")};

function timeline(c, id, field, label, format) {
  const series = [{label: "time", value: (u, v) => v == null ? "–" : significant(v) + " s"}], tables = [];
  c.runs.forEach((run, report) => {
    if (!run || !run.t.length) return;
    const marks = {points: {show: run.t.length < 120, size: 5}, spanGaps: true};
    series.push(line(name(report, label) || label, several ? report : 0, report, format, marks));
    tables.push([run.t, run[field]]);
  });
  draw(id, {series, scales: {x: {time: false, range: padded}, y: {range: zeroBased}},
    axes: [axis(significant, secondsAxis), axis(format, {size: 66})]}, join(tables));
}

function iterations(c) {
  const series = [{label: "iteration"}], tables = [];
  c.runs.forEach((run, report) => {
    if (!run) return;
    for (const [warm, label] of [[false, "counted"], [true, "warm-up"]]) {
      const kept = run.iterations.filter(it => it.warmup === warm && it.ns != null);
      if (!kept.length) continue;
      series.push(dots(name(report, label), several ? report : 0, time, warm));
      tables.push([kept.map(it => it.at), kept.map(it => it.ns)]);
    }
  });
  draw("iterations", {series, scales: {x: {time: false, range: padded}, y: {range: zeroBased}},
    axes: [axis(v => Number.isInteger(v) ? String(v) : "", {label: "iteration, in the order they ran", labelSize: 18}), axis(time, {size: 66})]}, join(tables));
}

function choose(index) {
  const c = data.cases[index];
  percentiles(c);
  timeline(c, "throughput", "rate", "received", rate);
  timeline(c, "latency", "p99", "P99", time);
  iterations(c);
}

function main() {
  for (const e of document.querySelectorAll(".js")) e.hidden = false;
  const picker = document.getElementById("case");
  if (!picker || !data.cases.length) return;
  overview();
  choose(picker.selectedIndex);
  picker.addEventListener("change", () => choose(picker.selectedIndex));
  new ResizeObserver(() => {
    for (const u of charts.values()) {
      const width = u.root.parentElement.clientWidth;
      if (width && width !== u.width) u.setSize({width, height: height()});
    }
  }).observe(document.querySelector("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(u => u.redraw(false, true)));
}

main();
document.title += " [ok]";
})();
