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
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function ticks(figure) {
  return figure.x.map((one) => (typeof one === "string" ? plain(one) : one));
}

function bandTraces(figure, x, c) {
  if (!figure.band) return [];
  const name = plain(figure.band.name);
  if (figure.sideways) {
    return [{
      type: "bar", orientation: "h", y: x, base: figure.band.low, name: name, hoverinfo: "skip",
      x: figure.band.high.map((high, i) => high - figure.band.low[i]),
      marker: { color: c.band }, width: 0.55,
    }];
  }
  const edge = { mode: "lines", line: { width: 0 }, hoverinfo: "skip", x: x };
  return [
    { ...edge, y: figure.band.low, showlegend: false },
    { ...edge, y: figure.band.high, fill: "tonexty", fillcolor: c.band, name: name },
  ];
}

function lineTrace(line, x, figure, c) {
  const colour = c[line.role];
  const trace = { x: x, y: line.y, name: plain(line.name) };
  if (figure.sideways) {
    return { ...trace, x: line.y, y: x, mode: "markers", marker: { color: colour, size: 9 } };
  }
  if (line.shape === "bars") {
    return { ...trace, type: "bar", marker: { color: colour } };
  }
  const dash = line.shape === "dashes" ? "dash" : "solid";
  const shape = line.shape === "step" ? "hvh" : "linear";
  const few = x.length <= 40 && line.shape === "line";
  return {
    ...trace, mode: few ? "lines+markers" : "lines",
    line: { color: colour, width: 2, dash: dash, shape: shape }, marker: { color: colour, size: 6 },
  };
}

function levelShape(figure, c) {
  if (!figure.level) return {};
  const at = figure.level[1];
  const place = figure.sideways
    ? { x0: at, x1: at, yref: "paper", y0: 0, y1: 1 }
    : { y0: at, y1: at, xref: "paper", x0: 0, x1: 1 };
  return {
    shapes: [{
      type: "line", line: { color: c.ink, width: 1, dash: "dot" }, name: plain(figure.level[0]),
      showlegend: true, ...place,
    }],
  };
}

function draw(place) {
  const figure = JSON.parse(document.getElementById(place.dataset.figure).textContent);
  const c = colours();
  const x = ticks(figure);
  const traces = bandTraces(figure, x, c).concat(figure.lines.map((line) => lineTrace(line, x, figure, c)));
  const axis = { gridcolor: c.line, zeroline: false, linecolor: c.line, automargin: true };
  const value = { ...axis, title: { text: figure.y_title, font: { size: 13 } }, tickformat: figure.percent ? ".0%" : undefined, hoverformat: figure.percent ? ".1%" : ".4~g" };
  const along = { ...axis, title: { text: figure.x_title, font: { size: 13 } } };
  if (figure.bounds) value.range = figure.bounds;
  if (x.length && Number.isInteger(x[0])) {
    along.tickformat = "d";
    if (x.length <= 20) along.dtick = 1; // else half a run gets a tick of its own
  }
  const sideways = { ...along, type: "category", autorange: "reversed" };
  const layout = {
    margin: { l: 56, r: 12, t: 34, b: 44 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    font: { color: c.quiet, family: c.font, size: 13 }, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, showlegend: figure.lines.length > 1 || Boolean(figure.level),
    hovermode: figure.sideways ? "closest" : "x unified", hoverdistance: figure.sideways ? 20 : -1, barmode: "overlay",
    hoverlabel: { font: { family: c.font, color: c.ink }, bgcolor: c.card, bordercolor: c.line },
    xaxis: figure.sideways ? value : along, yaxis: figure.sideways ? sideways : value,
    ...levelShape(figure, c),
  };
  Plotly.react(place, traces, layout, { responsive: true, displayModeBar: false, displaylogo: false });
  place.dataset.drawn = "yes";
}

function drawAll() {
  document.querySelectorAll("[data-figure]").forEach(draw);
}

document.addEventListener("DOMContentLoaded", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
