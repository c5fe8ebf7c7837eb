// Shows what a list would hold while the slider moves. Without this script the button asks for it.
"use strict";

function followShare(slider) {
  const rows = Array.from(document.querySelectorAll("tr[data-share]"));
  const told = document.querySelector("[data-told]");
  const away = (row) => Math.abs(Number(row.dataset.share) - slider.valueAsNumber);
  slider.addEventListener("input", () => {
    const chosen = rows.reduce((best, row) => (away(row) < away(best) ? row : best));
    rows.forEach((row) => row.removeAttribute("aria-current"));
    chosen.setAttribute("aria-current", "true");
    told.textContent = chosen.dataset.words; // text, never markup
  });
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("input[data-shares]").forEach(followShare);
  document.querySelectorAll("select[data-submit]").forEach((choice) => {
    choice.addEventListener("change", () => choice.form.submit());
  });
});
