// Draws the figures of a page with plotly; what to draw stands in JSON beside each place.
"use strict";

function colours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue("--" + name).trim();
  return {
    accent: read("accent"), second: read("second"), muted: read("muted"), warn: read("warn"),
    ink: read("ink"), quiet: read("quiet"), line: read("line"), band: read("band"), card: read("card"),
    font: style.fontFamily,
  };
}

// Names of classes and groups are hostile text: plotly reads some HTML in labels.
function plain(text) {
  return String(text).replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd").replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

const pen = document.createElement("canvas").getContext("2d");

// As much of a name as has room in so many pixels; whole letters, no half ones.
function shortened(text, pixels, font) {
  const letters = Array.from(String(text));
  const shown = letters.slice(0, 200);
  pen.font = "13px " + font;
  const room = (end) => pen.measureText(shown.join("") + end).width <= pixels;
  if (shown.length === letters.length && room("")) return shown.join("");
  while (shown.length > 1 && !room("…")) shown.pop();
  return shown.join("") + "…";
}

// Named places are their names, others the numbers; gaps are null.
function places(panel, x) {
  return panel.ticks.length ? panel.ticks.map((tick) => plain(tick[1])) : x;
}

function bandTraces(panel, band, c) {
  const x = places(panel, band.x), name = plain(band.label);
  if (panel.sideways) {
    return [{
      type: "bar", orientation: "h", y: x, base: band.low, name: name, hoverinfo: "skip",
      x: band.high.map((high, i) => high - band.low[i]),
      marker: { color: c.band }, width: 0.55,
    }];
  }
  const edge = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", x: x };
  return [
    { ...edge, y: band.low, showlegend: false },
    { ...edge, y: band.high, fill: "tonexty", fillcolor: c.band, name: name },
  ];
}

function barTrace(panel, bars, c) {
  const x = places(panel, bars.x);
  return { x: x, y: bars.height, name: plain(bars.label), type: "bar", marker: { color: c[bars.colour] } };
}

function lineTrace(panel, line, c) {
  const x = places(panel, line.x), colour = c[line.colour];
  const trace = { x: x, y: line.y, name: plain(line.label) };
  if (panel.sideways) {
    const told = panel.ticks.map((tick) => plain(shortened(tick[1], 400, c.font)));
    return { ...trace, x: line.y, y: x, text: told, hovertemplate: "%{text}: %{x}", mode: "markers", marker: { color: colour, size: 9 } };
  }
  const dash = line.shape === "dashes" ? "dash" : "solid";
  const shape = line.shape === "step" ? "hvh" : "linear";
  const named = line.names.length > 0;
  const few = x.length <= 40 && line.shape === "line";
  if (named) { // points are runs
    trace.text = line.names.map(plain);
    trace.hovertemplate = "%{y}, %{text}";
  }
  return {
    ...trace, mode: few || named ? "lines+markers" : "lines",
    line: { color: colour, width: 2, dash: dash, shape: shape }, marker: { color: colour, size: few ? 6 : 4 },
  };
}

function levelShape(panel, level, c) {
  const at = level.y;
  const place = panel.sideways
    ? { x0: at, x1: at, yref: "paper", y0: 0, y1: 1 }
    : { y0: at, y1: at, xref: "paper", x0: 0, x1: 1 };
  return {
    type: "line", line: { color: c.ink, width: 1, dash: "dot" }, name: plain(level.label),
    showlegend: true, ...place,
  };
}

// A line upwards where something was changed, with its letter on top; pointing at it tells what.
function markShape(mark, c) {
  return { type: "line", x0: mark.x, x1: mark.x, yref: "paper", y0: 0, y1: 1, line: { color: c.second, width: 1.5, dash: "dot" } };
}

function markLetter(mark, c) {
  return {
    x: mark.x, yref: "paper", y: 1, yanchor: "top", showarrow: false, text: plain(mark.letter), hovertext: plain(shortened(mark.words, 400, c.font)),
    font: { color: c.second, size: 12 }, bgcolor: c.card, borderpad: 1,
  };
}

function traces(panel, c) {
  return [
    ...panel.bands.flatMap((band) => bandTraces(panel, band, c)),
    ...panel.bars.map((bars) => barTrace(panel, bars, c)),
    ...panel.lines.map((line) => lineTrace(panel, line, c)),
  ];
}

// A page's figure has one panel.
function draw(place) {
  const panel = JSON.parse(document.getElementById(place.dataset.figure).textContent).panels[0];
  const c = colours();
  const series = panel.lines.concat(panel.bars);
  const x = series.length ? places(panel, series[0].x) : [];
  const axis = { gridcolor: c.line, zeroline: false, linecolor: c.line, automargin: true };
  const value = { ...axis, title: { text: panel.y_label, font: { size: 13 } }, tickformat: panel.percent ? ".0%" : undefined, hoverformat: panel.percent ? ".1%" : ".4~g" };
  const along = { ...axis, title: { text: panel.x_label, font: { size: 13 } } };
  if (panel.y_range) value.range = panel.y_range;
  if (panel.dates) {
    along.type = "date";
    along.hoverformat = "%Y-%m-%d %H:%M:%S";
  } else if (x.length && Number.isInteger(x[0])) {
    along.tickformat = "d";
    if (x.length <= 20 && x[x.length - 1] - x[0] <= 20) along.dtick = 1; // else half a run gets a tick
  }
  const sideways = { ...along, type: "category", autorange: "reversed" };
  if (panel.sideways) { // a third of the width at most is for names; pointing at a place tells all
    sideways.tickvals = places(panel, []);
    sideways.ticktext = panel.ticks.map((tick) => plain(shortened(tick[1], place.clientWidth / 3, c.font)));
  }
  const layout = {
    margin: { l: 56, r: 12, t: 34, b: 44 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    font: { color: c.quiet, family: c.font, size: 13 }, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, showlegend: series.length > 1 || panel.levels.length > 0,
    hovermode: panel.sideways ? "closest" : "x unified", hoverdistance: panel.sideways ? 20 : -1, barmode: "overlay",
    hoverlabel: { font: { family: c.font, color: c.ink }, bgcolor: c.card, bordercolor: c.line },
    xaxis: panel.sideways ? value : along, yaxis: panel.sideways ? sideways : value,
    shapes: panel.levels.map((level) => levelShape(panel, level, c)).concat(panel.marks.map((mark) => markShape(mark, c))),
    annotations: panel.marks.map((mark) => markLetter(mark, c)),
  };
  Plotly.react(place, traces(panel, c), layout, { responsive: true, displayModeBar: false, displaylogo: false });
  place.dataset.drawn = "yes";
}

function drawAll() {
  document.querySelectorAll("[data-figure]").forEach(draw);
}

document.addEventListener("DOMContentLoaded", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
