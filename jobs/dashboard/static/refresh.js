// Brings a page up to date while it is looked at. Without this script a person reloads it.
"use strict";

function isInUse(main) {
  const active = document.activeElement;
  return document.hidden || main.querySelector("details[open]") !== null || !getSelection().isCollapsed
    || (main.contains(active) && active !== main) || document.querySelector(".tooltip:not([hidden])") !== null;
}

function tell(main, words) {
  main.querySelector("[data-refreshed]").textContent = words; // text, never markup
}

async function refresh(main) {
  if (isInUse(main)) return;
  const now = new Date().toTimeString().slice(0, 5);
  try {
    const answer = await fetch(location.href, { headers: { "X-Refresh": "yes" } });
    if (!answer.ok || answer.redirected) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (isInUse(main)) return;
    main.replaceChildren(...page.getElementById("main").childNodes);
    explainHeadings();
    if (typeof drawAll === "function") drawAll();
    tell(main, "Brought up to date at " + now + ".");
  } catch (problem) {
    tell(main, "No answer at " + now + ": this page may be out of date.");
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const main = document.querySelector("main[data-refresh]");
  if (main) setInterval(() => refresh(main), 1000 * Number(main.dataset.refresh));
});
