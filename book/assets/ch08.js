/* Chapter 08: who may look at whom (W08a), how a mask is stretched (W08b), a leak detector (W08c), the laboratory of
   recorded mistakes (W10d, in chapter 10) and its six curves (W08e).

   A classic script beside widgets.js. W08a and W08b compute with the formulas of the page, and a test compares them
   with transformer_ref; the others show what the page's own cells have written into its script of JSON. */

(() => {
  "use strict";

  const WORDS = ["I", "closed", "the", "windows"], X = [[1, 0], [1, 1], [0, 1], [2, 0]];

  // ---- small tools -------------------------------------------------------------------------------------

  const { html, svg, head, column, rowHead, digits, grid, softmax, choice, onArrow } = window.widgets;

  /** Arrow keys move between the buttons of a table; Tab goes to one of them alone. */
  const roam = (table, columns) => {
    const buttons = [...table.querySelectorAll("button")];
    buttons.forEach((button, index) => button.setAttribute("tabindex", index ? -1 : 0));
    table.addEventListener("keydown", onArrow((right, down) => {
      const at = buttons.indexOf(document.activeElement), next = buttons[at + right + down * columns];
      if (at < 0 || !next) return;
      buttons[at].setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    }));
  };

  // ---- W08a: the mask painter ------------------------------------------------------------------------------

  const dot = (a, b) => a.reduce((sum, value, index) => sum + value * b[index], 0);
  const SCORES = X.map((query) => X.map((key) => dot(query, key) / Math.SQRT2));

  const APPLIED = {
    scores: (scores, open) => softmax(scores.map((score, key) => (open[key] ? score : -Infinity))),
    shares: (scores, open) => softmax(scores).map((share, key) => (open[key] ? share : 0)),
    product: (scores, open) => softmax(scores.map((score, key) => (open[key] ? score : 0))),
  };
  const START = {
    causal: (query, key) => key <= query,
    open: () => true,
    pad: (query, key) => key < 3,
    nobody: (query) => query > 0,
  };

  const painter = (root) => {
    let mask, polarity = "may", applied = "scores";
    const buttons = [], weights = html("table", { class: "matrix" }), outputs = html("table", { class: "matrix v" });
    const said = html("output", { "aria-live": "polite" });

    const draw = () => {
      const open = mask.map((row) => row.map((cell) => cell === (polarity === "may")));
      const shares = SCORES.map((row, query) => APPLIED[applied](row, open[query]));
      mask.flat().forEach((cell, index) => {
        const query = Math.floor(index / 4), key = index % 4, button = buttons[index];
        button.textContent = cell ? "T" : "F";
        button.setAttribute("aria-pressed", cell);
        button.setAttribute("aria-label", `query ${WORDS[query]}, key ${WORDS[key]}: ${cell ? "True" : "False"}`);
        button.classList.toggle("hidden-cell", !open[query][key]);
      });
      weights.replaceChildren(
        html("caption", {}, "weights"),
        html("thead", {}, html("tr", {}, html("td"), ...WORDS.map(column), column("sum"))),
        html("tbody", {}, ...shares.map((row, query) => html("tr", {}, rowHead(WORDS[query]),
          ...row.map((share, key) => html("td", { class: open[query][key] ? "" : "hidden-cell" }, digits(share))),
          html("td", { class: "total" }, digits(row.reduce((sum, share) => sum + share, 0)))))));
      outputs.replaceChildren(
        html("caption", {}, "output"),
        html("thead", {}, html("tr", {}, html("td"), column("1st"), column("2nd"))),
        html("tbody", {}, ...shares.map((row, query) => html("tr", {}, rowHead(WORDS[query]),
          ...[0, 1].map((feature) => html("td", {}, digits(dot(row, X.map((value) => value[feature])))))))));
      const shared = shares.map((row) => row.reduce((sum, share) => sum + share, 0));
      const leaking = shares.flatMap((row, query) => row.filter((share, key) => share > 0 && !open[query][key]));
      const blind = open.filter((row) => !row.includes(true)).length;
      said.textContent = leaking.length
        ? `${leaking.length} hidden cells get a weight, ${digits(Math.max(...leaking))} at most: this mask hides nothing.`
        : shared.some((sum, query) => open[query].includes(true) && Math.abs(sum - 1) > 1e-9)
          ? `Row sums ${shared.map((sum) => digits(sum)).join(", ")}: the weights of the hidden keys are missing.`
          : `Every query with at least one visible key has weights that sum to 1.${blind ? ` Queries without one, all zeros: ${blind}.` : ""}`;
    };

    const begin = (name) => { mask = grid(4, (query) => grid(4, (key) => START[name](query, key))); };
    begin("causal");
    const table = html("table", { class: "matrix painter" },
      html("caption", {}, "mask: ", html("span", { class: "role-query" }, "queries"), " down, ", html("span", { class: "role-key" }, "keys"), " across"),
      html("thead", {}, html("tr", {}, html("td"), ...WORDS.map(column))),
      html("tbody", {}, ...WORDS.map((word, query) => html("tr", {}, rowHead(word), ...WORDS.map((_, key) => {
        const button = html("button", { type: "button", onclick: () => { mask[query][key] = !mask[query][key]; draw(); } });
        buttons.push(button);
        return html("td", {}, button);
      })))));
    roam(table, 4);
    root.replaceChildren(
      head("Mask painter", "W08a"),
      html("div", { class: "widget-controls" },
        ...[["causal", "causal"], ["all open", "open"], ["windows is a pad", "pad"], ["no key for I", "nobody"]].map(([label, name]) =>
          html("button", { type: "button", onclick: () => { begin(name); draw(); } }, label))),
      html("div", { class: "widget-controls" },
        choice("True means", "W08a-polarity", [["may attend", "may"], ["forbidden", "not"]], polarity, (value) => { polarity = value; draw(); }),
        choice("the mask is applied to", "W08a-applied", [["scores: −∞", "scores"], ["weights × 0", "shares"], ["scores × 0", "product"]], applied, (value) => { applied = value; draw(); })),
      html("div", { class: "widget-body" }, table, weights, outputs), said);
    draw();
  };

  // ---- W08b: how a mask is stretched ----------------------------------------------------------------------

  const REAL = [[true, true, true, false], [true, true, false, false]]; // two sentences of four, with pads
  const B = 2, T = 4, AXES = ["sentences", "heads", "queries", "keys"];
  const MASKS = {
    padding: { shape: [B, 1, 1, T], at: (b, h, q, k) => REAL[b][k] },
    causal: { shape: [T, T], at: (q, k) => k <= q },
    both: { shape: [B, 1, T, T], at: (b, h, q, k) => REAL[b][k] && k <= q },
    queries: { shape: [B, 1, T, 1], at: (b, h, q) => REAL[b][q] },
    three: { shape: [B, 1, T], at: (b, q, k) => REAL[b][k] },
    two: { shape: [B, T], at: (b, k) => REAL[b][k] },
  };

  const stretched = (shape, full) => { // the axis that does not fit, or null
    const from = full.length - shape.length;
    const bad = shape.findIndex((size, axis) => size !== 1 && size !== full[from + axis]);
    return bad < 0 ? null : { axis: from + bad, size: shape[bad] };
  };

  const told = {
    padding: "Each sentence has one row of truth values, the same for every head and every query.",
    causal: "One table for all sentences and heads: which words come later does not depend on them.",
    both: "One table a sentence, the same for every head.",
    queries: "The pads are hidden as queries: their rows are closed, and every word still attends to them.",
    three: "No error, and wrong: sentence 0's pads went to head 0 of both sentences, sentence 1's to head 1.",
  };

  const stretcher = (root) => {
    let kind = "padding", heads = 2;
    const body = html("div", { class: "tables" }), said = html("output", { "aria-live": "polite" });

    const draw = () => {
      const { shape, at } = MASKS[kind], full = [B, heads, T, T], bad = stretched(shape, full);
      const shapes = `mask (${shape.join(", ")}) against scores (${full.join(", ")})`;
      if (bad) {
        body.replaceChildren();
        said.textContent = `${shapes}: an error. Laid over each other from the right, ${bad.size} meets ${full[bad.axis]} on the axis of ${AXES[bad.axis]}.`;
        return;
      }
      const read = (place) => at(...place.slice(4 - shape.length).map((index, axis) => (shape[axis] === 1 ? 0 : index)));
      body.replaceChildren(...grid(B, (b) => grid(heads, (h) => html("table", { class: "matrix small" },
        html("caption", {}, `sentence ${b}, head ${h}`),
        html("tbody", {}, ...grid(T, (q) => html("tr", {}, ...grid(T, (k) => {
          const open = read([b, h, q, k]);
          return html("td", { class: open ? "" : "hidden-cell" }, open ? "T" : "F");
        }))))))).flat());
      said.textContent = `${shapes}: ${shape.reduce((product, size) => product * size)} truth values for ${full.reduce((product, size) => product * size)} scores. ${told[kind]}`;
    };

    root.replaceChildren(
      head("One mask, many scores", "W08b"),
      html("p", {}, "Two sentences of four tokens: the first ends in one pad, the second in two."),
      html("div", { class: "widget-controls" },
        choice("the mask", "W08b-mask", [["(B, 1, 1, T)", "padding"], ["(T, T)", "causal"], ["(B, 1, T, T)", "both"], ["(B, 1, T, 1)", "queries"], ["(B, 1, T)", "three"], ["(B, T)", "two"]], kind, (value) => { kind = value; draw(); }),
        choice("heads", "W08b-heads", [["2", 2], ["3", 3]], heads, (value) => { heads = value; draw(); })),
      body, said);
    draw();
  };

  // ---- W08c: the leak detector --------------------------------------------------------------------------------

  const detector = (root, { tokens, models }) => {
    let model = models[0], t = 3;
    const table = html("table"), said = html("output", { "aria-live": "polite" });
    const draw = () => {
      const changed = model.changes[t - 1];
      const leaks = changed.map((size, place) => place < t && size > 1e-4);
      const told = (size, place) => (size <= 1e-4 ? "as before" : leaks[place] ? "✗ changed" : "changed");
      table.replaceChildren(
        html("thead", {}, html("tr", {}, column("place"), column("reads"), column("what it says"), column("moved by"))),
        html("tbody", {}, ...tokens.map((token, place) => html("tr", { class: leaks[place] ? "leak" : "" }, rowHead(place),
          html("td", {}, place === t ? `${token} → another` : token), html("td", { class: "told" }, told(changed[place], place)),
          html("td", {}, digits(changed[place], 2))))));
      const many = leaks.filter(Boolean).length;
      said.textContent = many
        ? `A leak: ${many} of the ${t} positions before position ${t} know of its token.`
        : `No leak at t = ${t}: nothing before it has changed.`;
    };
    const select = html("select", { id: "W08c-model", onchange: () => { model = models[select.selectedIndex]; draw(); } },
      ...models.map(({ name }) => html("option", {}, name)));
    root.replaceChildren(
      head("Leak detector", "W08c"),
      html("div", { class: "widget-controls" },
        html("div", {}, html("label", { for: "W08c-model" }, "the model "), select),
        choice("the token that is changed, t", "W08c-t", tokens.slice(1).map((token, index) => [`${index + 1}: ${token}`, index + 1]), t, (value) => { t = value; draw(); })),
      table, said);
    draw();
  };

  // ---- W10d: the laboratory --------------------------------------------------------------------------------------

  const WIDE = 420, HIGH = 250, LEFT = 68, TOP = 12, BOTTOM = 40;
  const LOWEST = 0.001, HIGHEST = 10; // of the loss axis, which is logarithmic

  const plot = (curves, steps, alt, small = false) => {
    const last = steps[steps.length - 1];
    const x = (step) => LEFT + (step / last) * (WIDE - LEFT - 12);
    const y = (loss) => {
      const up = Math.log(Math.min(HIGHEST, Math.max(LOWEST, loss)) / LOWEST) / Math.log(HIGHEST / LOWEST);
      return HIGH - BOTTOM - up * (HIGH - BOTTOM - TOP);
    };
    const size = small ? 21 : 13;
    const text = (across, down, anchor, words) => svg("text", { x: across, y: down, "text-anchor": anchor, "font-size": size, style: "fill:var(--figure-ink)" }, words);
    const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": alt });
    for (const loss of [0.001, 0.01, 0.1, 1, 10]) {
      picture.append(svg("line", { x1: LEFT, x2: WIDE - 12, y1: y(loss), y2: y(loss), style: "stroke:var(--figure-grid)" }), text(LEFT - 6, y(loss) + 5, "end", String(loss)));
    }
    const marks = [0, last / 2, last];
    marks.forEach((step, index) => picture.append(text(x(step), HIGH - BOTTOM + 22, index === 2 ? "end" : "middle", String(step))));
    if (!small) picture.append(text((LEFT + WIDE) / 2, HIGH - 3, "middle", "training step; loss, on a scale of powers of ten"));
    for (const { mean, low, high, color, dash } of curves) {
      const points = (values) => values.map((loss, index) => `${x(steps[index]).toFixed(1)},${y(loss).toFixed(1)}`);
      if (low) picture.append(svg("polygon", { points: [...points(low), ...points(high).reverse()].join(" "), style: `fill:${color}`, opacity: 0.25 }));
      picture.append(svg("polyline", { points: points(mean).join(" "), fill: "none", "stroke-width": 2.6, "stroke-dasharray": dash ?? "none", style: `stroke:${color}` }));
    }
    return picture;
  };

  const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;

  const laboratory = (root, { steps, sentences, sound, faults, groups }) => {
    const view = html("div"), said = html("output", { "aria-live": "polite" });
    const ordered = groups.flatMap(([name]) => faults.filter((fault) => fault.group === name));

    const draw = (fault) => {
      const losses = (found) => found.losses.map((loss) => digits(loss)).join(", ");
      const rights = (found) => found.rights.map(percent).join(", ");
      const alt = `Loss of the sound model, whole line, ending at ${losses(sound)} for the three seeds, and of ${fault.name}, dashed, ending at ${losses(fault)}.`;
      view.replaceChildren(
        html("div", { class: "widget-body" },
          html("div", { class: "plane" }, plot([{ ...sound, color: "var(--query)" }, { ...fault, color: "var(--mistake)", dash: "7 4" }], steps, alt)),
          html("div", { class: "side" },
            html("p", { class: "lines" }, html("b", {}, "wrong "), html("code", {}, fault.code), html("br"), html("b", {}, "right "), html("code", {}, fault.sound)),
            html("table", {},
              html("thead", {}, html("tr", {}, html("td"), column("— sound"), column("- - this"))),
              html("tbody", {},
                html("tr", {}, rowHead("loss at the end"), html("td", { class: "loss" }, losses(sound)), html("td", { class: "loss" }, losses(fault))),
                html("tr", {}, rowHead("exactly right"), html("td", {}, rights(sound)), html("td", { class: "right" }, rights(fault))))),
            html("p", {}, "Three numbers: three seeds. Exactly right: of sentences that it has not seen."))),
        html("table", { class: "words" },
          html("caption", {}, `Greedy translations, seed ${fault.seed}`),
          html("thead", {}, html("tr", {}, column("English"), column("sound"), column("this"))),
          html("tbody", {}, ...sentences.map((sentence, index) => html("tr", {}, rowHead(sentence),
            html("td", {}, sound.translations[index] || "(nothing)"), html("td", {}, fault.translations[index] || "(nothing)"))))),
        html("p", { class: "test-head" }, html("b", {}, "The test that finds it")),
        html("pre", { class: "test" }, fault.test));
      said.textContent = `${fault.name}: ${fault.group}. ${fault.verdict}`;
    };

    const select = html("select", { id: `${root.id}-fault`, onchange: () => draw(ordered[select.selectedIndex]) },
      ...groups.map(([name]) => html("optgroup", { label: name }, ...ordered.filter((fault) => fault.group === name).map((fault) => html("option", {}, fault.name)))));
    const step = (by) => {
      select.selectedIndex = (select.selectedIndex + by + ordered.length) % ordered.length;
      draw(ordered[select.selectedIndex]);
    };
    root.replaceChildren(
      head("The loss liar", root.id),
      html("div", { class: "widget-controls" },
        html("div", {}, html("label", { for: `${root.id}-fault` }, "the mistake "), select),
        html("button", { type: "button", onclick: () => step(-1) }, "← before"), html("button", { type: "button", onclick: () => step(1) }, "next →")),
      said, view);
    draw(ordered[0]);
  };

  // ---- W08e: six curves ---------------------------------------------------------------------------------------------

  const quiz = (root, { steps, sound, faults, quiz: chosen }) => {
    const models = chosen.map((name) => (name === "none" ? { name: "the sound model", ...sound } : faults.find((fault) => fault.name === name)));
    const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const said = html("output", { "aria-live": "polite" }), letters = "ABCDEF";
    const answer = (index) => {
      const model = models[index], right = mean(model.rights);
      said.textContent = `${letters[index]} is ${model.name === "the sound model" ? model.name : `“${model.name}”`}: ${percent(right)} exactly right, loss ${digits(mean(model.losses))}. ${right > 0.5 ? "It translates." : "It does not translate. Choose another."}`;
    };
    root.replaceChildren(
      head("Which model translates?", "W08e"),
      html("div", { class: "six" }, ...models.map((model, index) => html("div", {},
        plot([{ mean: model.mean, color: "var(--query)" }], steps, `Curve ${letters[index]}: the loss falls from ${digits(model.mean[0], 2)} to ${digits(model.mean[model.mean.length - 1])}.`, true),
        html("button", { type: "button", onclick: () => answer(index) }, `${letters[index]}: ${digits(mean(model.losses))}`)))),
      said);
    said.textContent = "Under each curve, its letter and its loss at the end. Choose the one that you would put to work.";
  };

  document.addEventListener("DOMContentLoaded", () => {
    const written = document.getElementById("laboratory-data");
    const data = written ? JSON.parse(written.textContent) : {};
    const builders = { "mask-painter": painter, "mask-stretcher": stretcher, "leak-detector": (root) => detector(root, data.leaks), "loss-liar": (root) => laboratory(root, data), "six-curves": (root) => quiz(root, data) };
    document.querySelectorAll("[data-masks]").forEach((root) => builders[root.dataset.masks](root));
  });
})();
