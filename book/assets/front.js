/* What surrounds the chapters: definitions that open where a term stands, and a map that knows what was read.

   A classic script, so that the pages work straight from the disk. What was read stays in this browser. */

(() => {
  "use strict";

  // ---- definitions ---------------------------------------------------------------------------------------

  // A bubble with the definition below the term that is pointed at, focused or tapped; Escape closes it, and the mouse
  // may move into it. Each term is described for screen readers from the start.
  const define = () => {
    const data = document.getElementById("definitions");
    if (!data) return;
    const known = JSON.parse(data.textContent);
    const terms = [...document.querySelectorAll('.bd-article a[href*="#term-"]')].filter((link) => known[link.hash.slice(1)]);
    const described = document.createElement("div");
    described.hidden = true;
    described.innerHTML = Object.entries(known).map(([anchor, html]) => `<span id="says-${anchor}">${html}</span>`).join("");
    const bubble = document.createElement("div");
    bubble.className = "definition";
    bubble.setAttribute("role", "tooltip");
    bubble.hidden = true;
    document.body.append(described, bubble);

    let shown = null, leaving = 0;
    const hide = () => { shown = null; bubble.hidden = true; };
    const show = (link) => {
      clearTimeout(leaving);
      if (shown === link) return;
      shown = link;
      bubble.innerHTML = known[link.hash.slice(1)];
      bubble.hidden = false;
      const line = link.getClientRects()[0], page = document.documentElement, edge = 8;
      const left = Math.min(line.left, page.clientWidth - bubble.offsetWidth - edge);
      const below = line.bottom + bubble.offsetHeight + edge < page.clientHeight;
      bubble.style.left = `${Math.max(edge, left) + window.scrollX}px`;
      bubble.style.top = `${(below ? line.bottom + 2 : line.top - bubble.offsetHeight - 2) + window.scrollY}px`;
    };
    const leave = () => { clearTimeout(leaving); leaving = setTimeout(hide, 150); };

    for (const link of terms) {
      link.classList.add("defined");
      link.setAttribute("aria-describedby", `says-${link.hash.slice(1)}`);
      let touched = false;
      link.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") show(link); });
      link.addEventListener("pointerleave", leave);
      link.addEventListener("pointerdown", (event) => { touched = event.pointerType !== "mouse" && shown !== link; });
      link.addEventListener("focus", () => show(link));
      link.addEventListener("blur", leave);
      link.addEventListener("click", (event) => { if (touched) { event.preventDefault(); touched = false; show(link); } });
    }
    bubble.addEventListener("pointerenter", () => clearTimeout(leaving));
    bubble.addEventListener("pointerleave", leave);
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
    document.addEventListener("pointerdown", (event) => { if (shown && !bubble.contains(event.target) && event.target !== shown) hide(); });
  };

  // ---- what was read -------------------------------------------------------------------------------------

  const PLACE = "attention-by-hand:read"; // {"05": 0.43, ...}: how far down a chapter's page the reader has been
  const DONE = 0.9; // the end of a page is a list of sources
  const recall = () => {
    try { return JSON.parse(localStorage.getItem(PLACE)) ?? {}; } catch { return {}; }
  };
  const keep = (read) => {
    try { localStorage.setItem(PLACE, JSON.stringify(read)); } catch { /* a browser that keeps nothing */ }
  };

  const noteReading = () => {
    const chapter = /\/(\d\d)_\w+\.html$/.exec(location.pathname)?.[1], article = document.querySelector(".bd-article");
    if (!chapter || !article) return;
    let waiting = false;
    const note = () => {
      waiting = false;
      const { top, height } = article.getBoundingClientRect(), read = recall();
      const share = Math.min(1, Math.max(0, (window.innerHeight - top) / height));
      if (share > (read[chapter] ?? 0)) keep({ ...read, [chapter]: Math.round(100 * share) / 100 });
    };
    addEventListener("scroll", () => { if (!waiting) { waiting = true; setTimeout(note, 500); } }, { passive: true });
  };

  const showReading = () => {
    const map = document.querySelector(".course-map");
    if (!map) return;
    const read = recall(), cards = [...map.querySelectorAll("[data-chapter]")];
    for (const card of cards) {
      const share = read[card.dataset.chapter] ?? 0;
      if (!share) continue;
      const said = document.createElement("b");
      said.className = "course-state";
      said.textContent = share >= DONE ? "✓ read" : `${Math.max(1, Math.round(100 * share))} % read`;
      card.append(said);
      card.classList.add(share >= DONE ? "done" : "begun");
      card.style.setProperty("--read", share);
    }
    const next = cards.find((card) => (read[card.dataset.chapter] ?? 0) < DONE), begin = document.querySelector(".course-begin a");
    if (!Object.keys(read).length) return;
    if (next && begin) {
      begin.href = next.querySelector("a").getAttribute("href");
      begin.textContent = `Go on with chapter ${next.dataset.chapter}, ${next.querySelector("a").textContent}`;
    }
    const forget = document.createElement("button");
    forget.type = "button";
    forget.textContent = "Forget what I have read";
    forget.addEventListener("click", () => { try { localStorage.removeItem(PLACE); } finally { location.reload(); } });
    const note = document.createElement("p");
    note.className = "course-forget";
    note.append("What you have read is kept in this browser and nowhere else. ", forget);
    map.after(note);
  };

  // ---- reading without a network -------------------------------------------------------------------------

  // A button on the landing page keeps the book in this browser. Nothing is fetched before it is pressed.
  const KEPT = "attention-by-hand";
  const offerKeeping = () => {
    const map = document.querySelector(".course-map");
    const served = location.protocol.startsWith("http") && "serviceWorker" in navigator && window.caches;
    if (!map || !served) return; // such as a page opened from the disk
    const note = document.createElement("p"), button = document.createElement("button"), said = document.createElement("span");
    note.className = "course-forget";
    button.type = "button";
    button.textContent = "Keep the book for reading offline";
    said.setAttribute("role", "status");
    note.append(button, " ", said);
    map.after(note);
    const root = new URL(".", location.href);
    const kept = (version) => { try { localStorage.setItem(`${KEPT}:offline`, version); } catch { /* it is kept all the same */ } };
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        const { version, bytes, files } = await (await fetch(new URL("offline.json", root))).json();
        await navigator.serviceWorker.register(new URL("sw.js", root));
        await caches.delete(KEPT);
        const cache = await caches.open(KEPT), size = (bytes / 1e6).toFixed(0);
        for (const [place, file] of files.entries()) {
          if (place % 20 === 0) said.textContent = `${Math.round(100 * place / files.length)} % of ${size} MB`;
          await cache.add(new Request(new URL(file, root), { cache: "no-cache" }));
        }
        kept(version);
        said.textContent = `All ${files.length} files (${size} MB) are kept in this browser: open this address again without a network.`;
      } catch (error) {
        said.textContent = `The book could not be kept: ${error.message}. Press again to try once more.`;
      }
      button.disabled = false;
    });
    const had = (() => { try { return localStorage.getItem(`${KEPT}:offline`); } catch { return null; } })();
    if (had) button.textContent = "Keep the book's newest version";
  };

  document.addEventListener("DOMContentLoaded", () => { define(); noteReading(); showReading(); offerKeeping(); });
})();
