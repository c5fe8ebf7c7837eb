// Explains a heading where the mouse or the keyboard is. Without this script browsers show `title`
// to the mouse, and the list of columns below each table has the same sentences.
"use strict";

const tip = document.createElement("div");
tip.id = "tooltip";
tip.className = "tooltip";
tip.setAttribute("role", "tooltip");
tip.hidden = true;

function showTip(heading) {
  tip.textContent = heading.dataset.about; // text, never markup
  tip.hidden = false;
  const box = heading.getBoundingClientRect();
  const left = Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = Math.max(8, left) + "px";
  const below = box.bottom + 6;
  const fits = below + tip.offsetHeight < innerHeight;
  tip.style.top = (fits ? below : Math.max(8, box.top - tip.offsetHeight - 6)) + "px";
  heading.setAttribute("aria-describedby", tip.id);
}

function hideTip() {
  tip.hidden = true;
}

function explainHeadings() {
  document.querySelectorAll("th [title]").forEach((heading) => {
    heading.dataset.about = heading.title;
    heading.removeAttribute("title");
    for (const event of ["mouseenter", "focus"]) heading.addEventListener(event, () => showTip(heading));
    for (const event of ["mouseleave", "blur"]) heading.addEventListener(event, hideTip);
  });
}

// One box chooses all nodes of a page; without this script each has its own.
function offerAll() {
  document.querySelectorAll("input[data-all]").forEach((all) => {
    all.hidden = false;
    all.addEventListener("change", () => {
      all.closest("table").querySelectorAll("input[name=key]").forEach((box) => { box.checked = all.checked; });
    });
  });
}

// Alt and a letter follow a link that names the key; by its place, since Alt makes other letters.
function followKey(event) {
  if (!event.altKey || event.ctrlKey || event.metaKey) return;
  const link = Array.from(document.querySelectorAll("a[data-code]")).find((a) => a.dataset.code === event.code);
  if (!link) return;
  event.preventDefault();
  link.click();
}

document.addEventListener("DOMContentLoaded", () => {
  document.body.append(tip);
  document.addEventListener("keydown", followKey);
  offerAll();
  explainHeadings();
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  document.addEventListener("scroll", hideTip, true);
});
