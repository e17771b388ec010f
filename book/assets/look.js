/* What the list of chapters knows of the reader: how far each chapter was read, as front.js notes it in this browser.
   A table that is wider than a phone can be scrolled by key. And paper is light, whatever the screen is. */

(() => {
  "use strict";
  const READ = "attention-by-hand:read", DONE = 0.9; // {"05": 0.43, ...}; the end of a page is a list of sources
  const recall = () => {
    try { return JSON.parse(localStorage.getItem(READ)) ?? {}; } catch { return {}; }
  };
  const show = () => {
    const read = recall();
    for (const number of document.querySelectorAll(".bd-links .chapter-number")) {
      const share = Math.min(1, Number(read[number.textContent]) || 0), link = number.closest("a");
      let state = link.querySelector(".chapter-state");
      if (!state) {
        state = document.createElement("span");
        state.className = "chapter-state";
        state.append(document.createElement("span"));
        link.append(state);
      }
      state.dataset.state = share >= DONE ? "read" : share > 0.03 ? "begun" : "";
      state.style.setProperty("--read", `${Math.round(360 * share)}deg`);
      state.firstChild.className = "visually-hidden";
      state.firstChild.textContent = share >= DONE ? ", read" : share > 0.03 ? `, read to ${Math.round(100 * share)} percent` : "";
    }
  };
  show();

  const reach = () => {
    for (const table of document.querySelectorAll(".numbers")) {
      if (table.scrollWidth <= table.clientWidth) continue;
      table.tabIndex = 0;
      table.setAttribute("role", "region");
      table.setAttribute("aria-label", table.querySelector("caption").textContent);
    }
    for (const block of document.querySelectorAll(".highlight pre")) {
      if (block.scrollWidth <= block.clientWidth) continue; // the theme lets keys reach and scroll it
      block.setAttribute("role", "group");
      block.setAttribute("aria-label", "Text that is wider than the page");
    }
  };
  // A map of a widget that goes on beyond its right edge fades there.
  const fade = () => {
    for (const map of document.querySelectorAll(".live-map, .ch13-scroll")) {
      map.classList.toggle("goes-on", map.scrollWidth - map.clientWidth - map.scrollLeft > 1);
    }
  };
  const measure = () => { reach(); fade(); };
  measure();
  addEventListener("resize", measure);
  document.addEventListener("toggle", measure, true); // what was folded had no width
  document.addEventListener("scroll", fade, { capture: true, passive: true });
  const article = document.querySelector("article");
  if (article) new MutationObserver(fade).observe(article, { childList: true, subtree: true }); // widgets draw again

  let onScreen; // the theme of the screen, while the page is printed
  addEventListener("beforeprint", () => { onScreen ??= document.documentElement.dataset.theme; document.documentElement.dataset.theme = "light"; });
  addEventListener("afterprint", () => { if (onScreen) document.documentElement.dataset.theme = onScreen; onScreen = undefined; });

  addEventListener("storage", (event) => { if (event.key === READ) show(); });
})();
