/* Chapter 13: a GPT of letters writes in the page (W13d), and says after each block what it would write (W13c).

   A classic script beside widgets.js. The first picture of W13c is in the page's script of JSON; all else is computed by
   live_model.js, whose LiveGPT a test compares with transformer_ref. */

(() => {
  "use strict";

  // ---- small tools -------------------------------------------------------------------------------------

  const { html, head, column, rowHead, thousands, choice, slider } = window.widgets;
  const sign = (letter) => ({ " ": "␣", "\n": "↵" })[letter] ?? letter;

  const strangers = (model, text) => [...new Set([...text].filter((letter) => !model.alphabet.includes(letter)))];
  const refused = (letters) => `It never saw ${letters.map((letter) => `“${letter}”`).join(", ")} in a tale. Leave ${letters.length > 1 ? "them" : "it"} out.`;
  const fetching = "Fetching the model, 0.3 megabytes …";

  // ---- W13c: asked after every block ---------------------------------------------------------------------

  const SHOWN = 12; // letters, the last ones of a text

  const lens = (root, first) => {
    const table = html("table", { class: "ch13-lens", "aria-label": "Guess after each block" });
    const said = html("output", { "aria-live": "polite" }), note = html("p", { role: "status", class: "ch11-note" });
    const draw = ({ read, rows }) => { // rows: depth by depth, for each letter read its likeliest next one and the share
      const next = [...read.slice(1), null];
      table.replaceChildren(
        html("thead", {}, html("tr", {}, column("it reads"), ...read.map((letter) => column(sign(letter))))),
        html("tbody", {}, ...rows.map((row, depth) => html("tr", {}, rowHead(depth ? `block ${depth}` : "start"),
          ...row.map(([letter, share], place) => html("td", { class: letter === next[place] ? "right" : "", style: `--share:${share.toFixed(3)}` },
            html("b", {}, sign(letter)), " ", html("small", {}, share.toFixed(2))))))));
      const last = rows.map((row) => row.at(-1));
      said.textContent = `After “${read.map(sign).join("")}” it would write: ${last.map(([letter, share], depth) => `${depth ? `block ${depth}` : "start"} “${sign(letter)}” ${share.toFixed(2)}`).join(", ")}.`;
    };
    const input = html("input", { type: "text", id: "W13c-text", maxlength: 190, value: first.text, autocomplete: "off", spellcheck: "false" });
    const ask = async (event) => {
      event.preventDefault();
      const text = input.value;
      if (!text.trim()) { note.textContent = "Type something first."; return; }
      note.textContent = fetching;
      try {
        const model = await window.liveModel.loadGPT(), odd = strangers(model, text);
        if (odd.length) { note.textContent = refused(odd); return; }
        const letters = model.alphabet.length, shown = Math.min(SHOWN, text.length);
        const rows = model.stream(model.encode(text), model.begin()).map((x) => {
          const scores = model.head(x.slice(-shown * model.sizes.d_model)); // (shown, letters)
          return Array.from({ length: shown }, (_, place) => {
            const shares = window.liveModel.softmax([...scores.slice(place * letters, (place + 1) * letters)]);
            const best = shares.indexOf(Math.max(...shares));
            return [model.alphabet[best], shares[best]];
          });
        });
        draw({ read: [...text].slice(-SHOWN), rows });
        note.textContent = "Computed here, by this page.";
      } catch (error) {
        note.textContent = `The model did not arrive (${error.message}).`;
      }
    };
    root.replaceChildren(
      head("Asked after every block", "W13c"),
      html("form", { class: "ch11-own", onsubmit: ask }, html("label", { for: "W13c-text" }, "A text of your own "), input, " ", html("button", { type: "submit" }, "ask")),
      note, html("div", { class: "ch13-scroll", role: "region", tabindex: "0", "aria-label": "Guesses, a row for each block" }, table), said);
    draw(first);
  };

  // ---- W13d: it writes -------------------------------------------------------------------------------------

  const MOST = 420; // letters written at one go

  const writer = (root) => {
    let tau = 0.7, kept = "yes", running = null, seed = 13;
    const paper = html("p", { class: "ch13-paper" }), said = html("output", { "aria-live": "polite" });
    const note = html("p", { role: "status", class: "ch11-note" });
    const input = html("input", { type: "text", id: "W13d-text", maxlength: 190, value: "Once upon a time", autocomplete: "off", spellcheck: "false" });
    const random = () => { // a small generator, so that the same clicks give the same tale
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return seed / 4294967296;
    };
    const choose = (logits) => {
      if (tau === 0) return logits.indexOf(Math.max(...logits));
      const shares = window.liveModel.softmax([...logits].map((score) => score / tau));
      let at = random();
      for (let id = 0; id < shares.length; id++) { at -= shares[id]; if (at < 0) return id; }
      return shares.length - 1;
    };
    const write = async (event) => {
      event.preventDefault();
      const text = input.value, own = (running = {});
      if (!text) { note.textContent = "Type the beginning of a tale first."; return; }
      note.textContent = fetching;
      try {
        const model = await window.liveModel.loadGPT(), odd = strangers(model, text), places = model.sizes.max_length;
        if (odd.length) { note.textContent = refused(odd); return; }
        note.textContent = "";
        const ids = model.encode(text), begun = ids.length;
        const old = html("span", { class: "ch13-old" }), seen = html("span"), end = html("span", { class: "ch13-cursor", "aria-hidden": "true" }, "▏");
        paper.replaceChildren(old, seen, end);
        let cache = model.begin(), reads = 0, steps = 0, time = 0, told = 0;
        said.textContent = "It writes.";
        stop.disabled = false;
        const tell = (over) => {
          const moved = ids.length > places;
          said.textContent = `${over} ${steps} letters written, ${thousands(reads)} read for it: ${(reads / steps).toFixed(1)} a letter, ${(time / steps).toFixed(1)} ms each.`
            + (kept === "no" ? " Nothing is kept." : moved ? " The window has moved, so nothing kept can be used any more." : " Keys and values are kept.");
        };
        while (running === own && steps < MOST) {
          const began = performance.now();
          const usable = kept === "yes" && cache.length > 0 && ids.length <= places; // else all is read anew
          if (!usable) cache = model.begin();
          const now = usable ? ids.slice(cache.length) : ids.slice(-places);
          const logits = model.read(now, cache);
          reads += now.length;
          ids.push(choose(logits));
          steps++;
          time += performance.now() - began;
          old.textContent = model.decode(ids.slice(0, Math.max(0, ids.length - places)));
          seen.textContent = model.decode(ids.slice(Math.max(0, ids.length - places)));
          if (model.alphabet[ids.at(-1)] === "\n") break;
          if (performance.now() - told > 60) { // let the page breathe
            tell("So far");
            await new Promise((done) => setTimeout(done, 0));
            told = performance.now();
          }
        }
        if (running !== own && running !== null) return; // somebody asked anew
        end.remove();
        tell(model.alphabet[ids.at(-1)] === "\n" ? "The end." : "Stopped.");
        note.textContent = ids.length > places ? "Gray letters lie outside the window: it no longer sees them." : `${begun} letters were yours.`;
      } catch (error) {
        note.textContent = `The model did not arrive (${error.message}).`;
      } finally {
        if (running === own) running = null;
        stop.disabled = running === null;
      }
    };
    const announce = () => {
      if (running === null) said.textContent = `The next letters: temperature ${tau.toFixed(1)}, keys and values ${kept === "no" ? "computed anew" : "kept"}.`;
    };
    const stop = html("button", { type: "button", onclick: () => { running = null; } }, "stop");
    stop.disabled = true;
    root.replaceChildren(
      head("It writes, in this page", "W13d"),
      html("form", { class: "ch11-own", onsubmit: write }, html("label", { for: "W13d-text" }, "The tale begins "), input, " ", html("button", { type: "submit" }, "go on"), " ", stop),
      html("div", { class: "widget-controls" },
        slider("temperature τ", "W13d-tau", { min: 0, max: 1.5, step: 0.1, value: tau }, (value) => value.toFixed(1), (value) => { tau = value; announce(); }),
        choice("keys and values", "W13d-cache", [["kept", "yes"], ["computed anew", "no"]], kept, (value) => { kept = value; announce(); })),
      note, paper, said);
  };

  document.addEventListener("DOMContentLoaded", () => {
    const written = document.getElementById("gpt-data");
    const data = written ? JSON.parse(written.textContent) : {};
    const builders = { lens: (root) => lens(root, data.lens), writer };
    document.querySelectorAll("[data-gpt]").forEach((root) => builders[root.dataset.gpt](root));
  });
})();
