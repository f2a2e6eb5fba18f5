// SPDX-License-Identifier: GPL-2.0-only
// Draws each plot when it comes into sight, and everything before the page goes onto paper.

const { kinds, plots } = JSON.parse(document.getElementById("plots").textContent);
const asked = new Map();
window.reamViews = {};

function widthOf(host) {
  // A plot inside of a closed part has no width of its own yet: it gets that of its section.
  const box = host.clientWidth || host.closest("section").clientWidth;
  return Math.max(box, 240);
}

function draw(host) {
  if (asked.has(host)) return;
  const plot = plots[host.id];
  const kind = kinds[plot.kind];
  const datasets = { ...kind.datasets, ...plot.data };
  // A list of one name of a scale stands for the plot's own values of it.
  const filled = JSON.parse(JSON.stringify(kind), (_, value) =>
    (Array.isArray(value) && plot.scales[value[0]]) || value);
  const spec = { ...filled, datasets, width: widthOf(host) };
  // Expressions are interpreted, not compiled: the page's policy forbids to make code of text.
  const options = {
    actions: false,
    ast: true,
    defaultStyle: false,
    mode: "vega-lite",
    // Names at the left are part of the width; Vega-Lite cannot say so of a height by steps.
    patch: (made) => ({ ...made, autosize: { type: "fit-x", contains: "padding" } }),
    renderer: "svg",
    tooltip: false,
  };
  const inner = document.createElement("div");
  inner.setAttribute("aria-hidden", "true"); // its words are on the plot itself
  host.append(inner);
  asked.set(host, reamEmbed(inner, spec, options).then(({ view }) => {
    window.reamViews[host.id] = view;
    host.dataset.drawn = "yes";
  }, (fault) => {
    inner.textContent = "This plot could not be drawn; its numbers are in the table.";
    console.error(host.id, fault);
  }));
}

const hosts = [...document.querySelectorAll(".plot")];
const inSight = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (isIntersecting) draw(target);
  }
}, { rootMargin: "400px" });
hosts.forEach((host) => inSight.observe(host));

let waiting;
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    for (const host of hosts) {
      const view = window.reamViews[host.id];
      if (view && host.clientWidth && view.width() !== widthOf(host)) {
        view.width(widthOf(host)).runAsync();
      }
    }
  }, 100);
});

// --- Parts that fold ---------------------------------------------------------------------

const opened = [];

function openForPaper() {
  for (const part of document.querySelectorAll("details:not([open]):not([data-print])")) {
    part.open = true;
    opened.push(part);
  }
  hosts.forEach(draw);
}

function closeAfterPaper() {
  for (const part of opened.splice(0)) part.open = false;
}

window.addEventListener("beforeprint", openForPaper);
window.addEventListener("afterprint", closeAfterPaper);
matchMedia("print").addEventListener("change", ({ matches }) => {
  (matches ? openForPaper : closeAfterPaper)();
});

const button = document.getElementById("open-rows");
if (button) {
  const rows = [...document.querySelectorAll("details.row")];
  button.hidden = false;
  button.addEventListener("click", () => {
    const open = rows.some((row) => !row.open);
    rows.forEach((row) => { row.open = open; });
    button.textContent = open ? "Close all rows" : "Open all rows";
  });
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const part = target && target.closest("details");
  if (part) {
    part.open = true;
    part.scrollIntoView();
  }
}

window.addEventListener("hashchange", openTarget);
openTarget();
