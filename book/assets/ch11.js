/* Chapter 11: a batch that writes step by step (W11a), a beam that grows (W11b), what a cache saves (W11c), and what
   temperature, top-k and top-p leave of real scores (W11d).

   A classic script beside widgets.js. W11a, W11b and W11d show what the page's own cells have written into its
   script of JSON; a sentence of the reader's own is translated by live_model.js. W11c and W11d compute with the formulas
   of the page, and a test compares them with transformer_ref. */

(() => {
  "use strict";

  // ---- small tools -------------------------------------------------------------------------------------

  const { html, head, column, rowHead, digits, thousands, softmax, choice, slider } = window.widgets;
  const plain = (token) => (token === "<eos>" ? "end" : token.replaceAll("\uffed", ""));

  /** Words with their shares, each a bar as long as its share. */
  const bars = (rows, label) => html("ol", { class: "ch11-bars", "aria-label": label }, ...rows.map(([word, share]) =>
    html("li", { style: `--share:${Math.min(1, share).toFixed(4)}` }, html("span", {}, word), " ", html("b", {}, digits(share)))));

  // ---- W11a: a batch, one time step after the other --------------------------------------------------------

  const player = (root, batch) => {
    const sentences = batch.map((row) => ({ ...row }));
    let step = 0;
    const rows = html("ol", { class: "ch11-rows" }), said = html("output", { "aria-live": "polite" });
    const last = () => Math.max(...sentences.map(({ written }) => written.length));

    const chip = (word, kind = "") => html("span", { class: `ch11-chip ${kind}`.trim() }, word);
    const inputOf = ({ written }) => {
      const own = written.slice(0, step), ended = step >= written.length;
      const pads = ended ? Math.max(0, step - written.length) : 0;
      return [chip("<bos>"), ...own.map((word, place) => chip(word, place === step - 1 ? "new" : "")),
        ...Array.from({ length: pads }, () => chip("<pad>", "hidden-cell"))];
    };

    const draw = () => {
      rows.replaceChildren(...sentences.map((row) => {
        const ended = step >= row.written.length;
        return html("li", { class: ended ? "finished" : "" },
          html("p", {}, html("b", {}, row.source), ended ? ` finished at step ${row.written.length}` : ""),
          html("p", { class: "ch11-input" }, html("small", {}, ended ? "D wrote" : "D reads"), " ", ...inputOf(row).flatMap((node) => [node, " "])),
          ended ? html("p", { class: "ch11-asked" }, "nothing more is asked of it") : bars(row.likely[step], `Likeliest next words for ${row.source}`));
      }));
      const open = sentences.filter(({ written }) => step < written.length);
      said.textContent = step === 0
        ? `Before step 1: the decoder of each row reads <bos> alone.`
        : `After step ${step}: ${open.length} of ${sentences.length} rows go on${open.length ? `, likeliest next: ${open.map((row) => `“${row.likely[step][0][0]}”`).join(", ")}` : ". The loop is over"}.`;
      back.disabled = begin.disabled = step === 0;
      forth.disabled = end.disabled = step >= last();
    };
    const go = (to) => { step = Math.min(last(), Math.max(0, to)); draw(); };
    const button = (label, to) => html("button", { type: "button", onclick: () => go(to()) }, label);
    const begin = button("start", () => 0), back = button("← step", () => step - 1), forth = button("step →", () => step + 1), end = button("to the end", last);

    const note = html("p", { role: "status", class: "ch11-note" });
    const input = html("input", { type: "text", id: "W11a-own", maxlength: 120, value: "I found the keys.", autocomplete: "off", spellcheck: "false" });
    const add = async (event) => {
      event.preventDefault();
      const text = input.value.trim();
      if (!text) { note.textContent = "Type a sentence first."; return; }
      note.textContent = "Fetching the model, about a megabyte …";
      try {
        const model = await window.liveModel.load(), asked = model.inKnownCase(text), result = model.translate(asked);
        const doubts = model.doubts(asked, result);
        const own = { source: asked, written: result.target.map(plain), likely: result.likeliest.map((best) => best.map(([token, share]) => [plain(token), share])) };
        sentences.splice(batch.length, sentences.length, own);
        note.textContent = doubts.length ? `Outside its world, do not believe it: ${doubts.join("; ")}.` : "Your sentence is the last row.";
        go(0);
      } catch (error) {
        note.textContent = `The model did not arrive (${error.message}).`;
      }
    };

    root.replaceChildren(
      head("Time-step player", "W11a"),
      html("div", { class: "widget-controls" }, begin, back, forth, end), said, rows,
      html("form", { class: "ch11-own", onsubmit: add }, html("label", { for: "W11a-own" }, "A sentence of your own "), input, " ", html("button", { type: "submit" }, "add it")), note);
    draw();
  };

  // ---- W11b: the beam, as a tree that grows ------------------------------------------------------------------

  const beam = (root, searched) => {
    const names = Object.keys(searched);
    let name = names[0], k = 2, alpha = 0, step = 1;
    const tree = html("div", { class: "ch11-tree" }), ranking = html("div"), said = html("output", { "aria-live": "polite" });
    const kinds = { kept: "goes on", finished: "✓ finished", cut: "✗ cut" };
    const together = (log) => `${log > Math.log(0.005) ? `${digits(Math.exp(log), 2)} or ` : ""}ln p ${digits(log, 2)}`;
    const last = ({ words }) => plain(words[words.length - 1]);
    const text = (words) => words.map(plain).join(" ");

    const childrenOf = (steps, words, length) => (length > step ? [] : steps[length - 1]
      .filter((one) => one.words.slice(0, -1).join(" ") === words.join(" ")).map((one) => {
        const below = one.fate === "kept" ? childrenOf(steps, one.words, length + 1) : [];
        const before = words.length ? steps[length - 2].find((parent) => parent.words.join(" ") === words.join(" ")).log : 0;
        return html("li", { class: one.fate },
          html("span", { class: "ch11-word" }, last(one)), " ", html("span", { class: "ch11-p" }, `${digits(Math.exp(one.log - before), 2)}, in all ${together(one.log)}`), " ", html("small", {}, length === step || one.fate !== "kept" ? kinds[one.fate] : ""),
          ...(below.length ? [html("ul", {}, ...below)] : []));
      }));

    const draw = () => {
      const { steps, finished } = searched[name][k];
      step = Math.min(step, steps.length);
      tree.replaceChildren(html("ul", {}, html("li", { class: "kept" }, html("span", { class: "ch11-word" }, "<bos>"), html("ul", {}, ...childrenOf(steps, [], 1)))));
      const so = finished.filter(({ words }) => words.length <= step).map((one) => ({ ...one, score: one.log / one.words.length ** alpha })).sort((a, b) => b.score - a.score);
      ranking.replaceChildren(...(so.length ? [html("table", {},
        html("caption", {}, "Finished so far, the best first"),
        html("thead", {}, html("tr", {}, column("written"), column("tokens"), column("ln p"), column("score"))),
        html("tbody", {}, ...so.map(({ words, log, score }) => html("tr", {}, rowHead(text(words)), html("td", {}, words.length), html("td", {}, digits(log, 3)), html("td", { class: "score" }, digits(score, 3))))))] : [html("p", {}, "Nothing is finished yet.")]));
      const living = steps[step - 1].filter(({ fate }) => fate === "kept").length, over = step === steps.length;
      said.textContent = `Step ${step} of ${steps.length}, k = ${k}: ${over ? "the search is over" : `${living} ${living === 1 ? "hypothesis goes" : "hypotheses go"} on`}, ${so.length} finished.${so.length ? ` Best with alpha ${digits(alpha, 1)}: ${text(so[0].words)}.` : ""}`;
      back.disabled = step === 1;
      forth.disabled = end.disabled = over;
    };

    const button = (label, to) => html("button", { type: "button", onclick: () => { step = Math.max(1, to()); draw(); } }, label);
    const back = button("← step", () => step - 1), forth = button("step →", () => step + 1), end = button("to the end", () => 99);
    const most = () => Object.keys(searched[name]).length;
    const width = html("div");
    const drawWidth = () => width.replaceChildren(choice("k, hypotheses kept", "W11b-k", Array.from({ length: most() }, (_, i) => [String(i + 1), i + 1]), k, (value) => { k = value; step = 1; draw(); }));
    const select = html("select", { id: "W11b-model", onchange: () => { name = names[select.selectedIndex]; k = Math.min(k, most()); step = 1; drawWidth(); draw(); } },
      ...names.map((one) => html("option", {}, one)));
    drawWidth();
    root.replaceChildren(
      head("Beam search", "W11b"),
      html("div", { class: "widget-controls" }, html("div", {}, html("label", { for: "W11b-model" }, "what is translated"), select), width,
        slider("α", "W11b-alpha", { min: 0, max: 1.5, step: 0.1, value: alpha }, (value) => digits(value, 1), (value) => { alpha = value; draw(); })),
      html("div", { class: "widget-controls" }, back, forth, end), said, tree, ranking);
    draw();
  };

  // ---- W11c: what a cache saves --------------------------------------------------------------------------------

  const meter = (root) => {
    let n = 8, cached = false;
    const table = html("table", { class: "matrix small", "aria-label": "How often each cell is computed" }), said = html("output", { "aria-live": "polite" });
    const draw = () => {
      const times = (row, place) => (cached ? (place <= row ? 1 : 0) : n - Math.max(row, place));
      table.replaceChildren(
        html("tbody", {}, ...Array.from({ length: n }, (_, row) => html("tr", {}, ...Array.from({ length: n }, (_, place) => {
          const many = times(row, place), future = place > row;
          const style = many && !future ? `background-color:color-mix(in srgb, #0072b2 ${Math.round((40 * many) / n)}%, var(--figure-paper))` : "";
          return html("td", { class: future && many ? "hidden-cell" : "", style }, many ? String(many) : "");
        })))));
      let without = 0, withCache = 0;
      for (let t = 1; t <= n; t++) { without += t * t; withCache += t; }
      said.textContent = `${n} ${n === 1 ? "word" : "words"}, ${cached ? "with" : "without"} a cache: ${cached ? withCache : without} cells. Without: ${without}, with: ${withCache}, ${digits(without / withCache, 1)} times. Tokens through each projection: ${withCache} without, ${n} with.`;
    };
    root.replaceChildren(
      head("Cache meter", "W11c"),
      html("div", { class: "widget-controls" },
        slider("words written", "W11c-n", { min: 1, max: 12, value: n }, String, (value) => { n = value; draw(); }),
        choice("the decoder", "W11c-cache", [["computes all anew", "no"], ["keeps keys and values", "yes"]], "no", (value) => { cached = value === "yes"; draw(); })),
      html("p", {}, "How often each cell is computed: ", html("span", { class: "role-query" }, "queries"), " down, ", html("span", { class: "role-key" }, "keys"), " across"),
      table, html("p", { class: "ch11-note" }, "Hatched: computed, and then closed by the causal mask. Empty: never computed."), said);
    draw();
  };

  // ---- W11d: temperature, top-k and top-p --------------------------------------------------------------------

  /** The shares to draw from, as transformer_ref/decoding/sampling.py makes them: tau, then top-k, then top-p. */
  const left = (logits, tau, k, p) => {
    let scores = logits.map((score) => score / tau);
    if (k && k < scores.length) {
      const weakest = [...scores].sort((a, b) => b - a)[k - 1];
      scores = scores.map((score) => (score < weakest ? -Infinity : score));
    }
    const shares = softmax(scores);
    if (!p) return shares;
    const order = [...shares.keys()].sort((a, b) => shares[b] - shares[a]), kept = shares.map(() => 0);
    let before = 0, total = 0;
    for (const id of order) {
      if (before >= p) break;
      kept[id] = shares[id];
      before += shares[id];
      total += shares[id];
    }
    return kept.map((share) => share / total);
  };

  const SHOWN = 6, DRAWS = 20;

  const sampler = (root, places, tokens) => {
    let place = places[1], tau = 1, k = 0, p = 0, seed = 11;
    const view = html("div"), said = html("output", { "aria-live": "polite" }), drawn = html("p", { role: "status", class: "ch11-note" });
    let shares = [];
    const draw = () => {
      shares = left(place.logits, tau, k, p);
      const order = [...shares.keys()].sort((a, b) => shares[b] - shares[a]), kept = shares.filter((share) => share > 0).length;
      const rest = order.slice(SHOWN).reduce((sum, id) => sum + shares[id], 0);
      const others = Math.max(0, kept - SHOWN);
      view.replaceChildren(
        html("p", {}, html("b", {}, place.sentence), place.before.length ? ` Written so far: ${place.before.join(" ")}` : " Nothing is written yet."),
        bars([...order.slice(0, SHOWN).filter((id) => shares[id] > 0).map((id) => [tokens[id], shares[id]]), ...(others ? [[`${thousands(others)} others`, rest]] : [])], "Probabilities to draw from"));
      said.textContent = `${thousands(kept)} of ${thousands(shares.length)} tokens are left. The likeliest, ${tokens[order[0]]}, has ${digits(shares[order[0]])}; the ${thousands(others)} beyond the first ${SHOWN} have ${digits(rest)} together.`;
      drawn.textContent = "";
    };
    const random = () => { // a small generator, so that the same clicks give the same words
      seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
      return seed / 4294967296;
    };
    const one = () => {
      let at = random();
      for (let id = 0; id < shares.length; id++) { at -= shares[id]; if (at < 0 && shares[id] > 0) return id; }
      return shares.indexOf(Math.max(...shares));
    };
    const drawWords = () => {
      const counts = new Map();
      for (let i = 0; i < DRAWS; i++) { const id = one(); counts.set(id, (counts.get(id) ?? 0) + 1); }
      drawn.textContent = `Drawn ${DRAWS} times: ${[...counts].sort((a, b) => b[1] - a[1]).map(([id, many]) => `${tokens[id]}${many > 1 ? ` × ${many}` : ""}`).join(", ")}.`;
    };
    root.replaceChildren(
      head("What is left to draw from", "W11d"),
      html("div", { class: "widget-controls" },
        choice("the model is", "W11d-place", places.map((one) => [one.name, one.name]), place.name, (value) => { place = places.find(({ name }) => name === value); draw(); }),
        slider("temperature τ", "W11d-tau", { min: 0.1, max: 2, step: 0.1, value: tau }, (value) => digits(value, 1), (value) => { tau = value; draw(); })),
      html("div", { class: "widget-controls" },
        choice("top-k", "W11d-k", [["off", 0], ["1", 1], ["2", 2], ["5", 5], ["20", 20]], k, (value) => { k = value; draw(); }),
        choice("top-p", "W11d-p", [["off", 0], ["0.6", 0.6], ["0.8", 0.8], ["0.9", 0.9], ["0.95", 0.95]], p, (value) => { p = value; draw(); })),
      view, said, html("div", { class: "widget-controls ch11-draw" }, html("button", { type: "button", onclick: drawWords }, `draw ${DRAWS} words`)), drawn);
    draw();
  };

  document.addEventListener("DOMContentLoaded", () => {
    const written = document.getElementById("inference-data");
    const data = written ? JSON.parse(written.textContent) : {};
    const builders = { player: (root) => player(root, data.batch), beam: (root) => beam(root, data.beam), meter, sampler: (root) => sampler(root, data.places, data.tokens) };
    document.querySelectorAll("[data-inference]").forEach((root) => builders[root.dataset.inference](root));
  });
})();
