/* What a reader does with an exported translator: write a sentence, go through its steps, look where it looked.

   live_model.js computes; `window.aboutTranslator` is what interop/page.py says of the model. */

(() => {
  "use strict";

  const SHOWN = 5; // words that could be written next
  const LONGEST = 1000; // characters
  const SECONDS = 1.1; // a step, when it plays
  const WHITE_FROM = 0.92; // a share this dark takes white letters; below, black has more contrast
  const NAMES = { "<pad>": "padding", "<bos>": "begin", "<eos>": "end", "<unk>": "unknown" };

  const about = window.aboutTranslator, { config } = window.liveModelWeights;

  const html = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  };

  // A token as a reader knows it: without the marks that say where it touched its neighbor.
  const plain = (token) => NAMES[token] ?? (token.replaceAll("\uffed", "").trim() || (token.includes("\uffed") ? "joined" : "space"));
  const percent = (share) => (share < 0.001 ? "below 0.1 %" : `${(100 * share).toFixed(1)} %`);
  const option = (value, text) => html("option", { value }, text);
  const numbered = (count, name) => Array.from({ length: count }, (_, i) => option(i, `${name} ${i + 1}`));

  let result = null, step = 0, timer = null;

  // ---- the sentence --------------------------------------------------------------------------------------

  const input = html("input", { type: "text", id: "sentence", maxlength: LONGEST, autocomplete: "off", spellcheck: "false", value: about.examples[0] ?? "" });
  const output = html("output", { "aria-live": "polite", lang: about.target, for: "sentence" });
  const note = html("p", { class: "note", role: "status" });
  const drawn = html("div", { hidden: true });

  const translate = async (event) => {
    event?.preventDefault();
    play(false);
    const text = input.value.trim();
    if (!text) {
      drawn.hidden = true;
      output.textContent = "";
      note.textContent = "Write a sentence first.";
      input.focus();
      return;
    }
    try {
      const model = await window.liveModel.load(), began = performance.now(), read = model.inKnownCase(text);
      result = model.translate(read, SHOWN);
      const strangers = model.strangers(read), sure = Math.exp(result.meanLog);
      output.textContent = result.translation || "…";
      note.textContent = [
        read === text ? "" : `Read as “${read}”.`,
        strangers.length ? `It never saw ${strangers.map((word) => `“${word}”`).join(", ")}, and reads it letter by letter.` : "",
        `It gave its own words ${percent(sure)} on average. ${result.target.length} steps in ${Math.max(1, Math.round(performance.now() - began))} ms, on your machine.`,
      ].filter(Boolean).join(" ");
      drawn.hidden = false;
      slider.max = result.target.length;
      show(0);
    } catch (error) {
      drawn.hidden = true;
      note.textContent = `This sentence could not be translated: ${error.message}.`;
    }
  };

  // ---- the steps -----------------------------------------------------------------------------------------

  const slider = html("input", { type: "range", id: "step", min: 1, value: 1, oninput: () => { play(false); show(slider.value - 1); } });
  const label = html("label", { for: "step" }), read = html("p", { class: "read" }), likely = html("ol", { class: "likely" });
  const steps = html("div", { "aria-live": "polite" }, read, html("p", {}, "What it gives to the words that could come next:"), likely);
  const before = html("button", { type: "button", onclick: () => { play(false); show(step - 1); } }, "Step back");
  const after = html("button", { type: "button", onclick: () => { play(false); show(step + 1); } }, "Next step");
  const playing = html("button", { type: "button", onclick: () => play(timer === null) }, "Play");

  function play(on) {
    clearInterval(timer);
    timer = on ? setInterval(() => (step + 1 < result.target.length ? show(step + 1) : play(false)), 1000 * SECONDS) : null;
    if (on && step + 1 === result.target.length) show(0);
    playing.textContent = on ? "Pause" : "Play";
  }

  function show(number) {
    step = Math.min(Math.max(number, 0), result.target.length - 1);
    slider.value = step + 1;
    label.textContent = `Step ${step + 1} of ${result.target.length}`;
    slider.setAttribute("aria-valuetext", `${label.textContent}: ${plain(result.target[step])}`);
    before.disabled = step === 0;
    after.disabled = step + 1 === result.target.length;
    read.replaceChildren("The decoder has read: ", html("b", {}, ["<bos>", ...result.target.slice(0, step)].map(plain).join(" ")));
    likely.replaceChildren(...result.likeliest[step].map(([token, share]) => html("li", { style: `--share:${share.toFixed(4)}` },
      html("span", {}, plain(token)), " ", html("b", {}, percent(share)))));
    draw();
  }

  // ---- where it looked -----------------------------------------------------------------------------------

  const KINDS = {
    cross: { name: "decoder at the source", layers: config.decoder_layers, rows: () => result.target, columns: () => result.source, row: "word written", column: "word read" },
    decoder: { name: "decoder at itself", layers: config.decoder_layers, rows: () => result.target, columns: () => ["<bos>", ...result.target.slice(0, -1)], row: "word written", column: "word written before" },
    encoder: { name: "encoder at itself", layers: config.encoder_layers, rows: () => result.source, columns: () => result.source, row: "word that looks", column: "word looked at" },
  };
  const kind = html("select", { id: "kind", onchange: () => { settle(); draw(); } }, ...Object.entries(KINDS).map(([value, { name }]) => option(value, name)));
  const layer = html("select", { id: "layer", onchange: draw });
  const head = html("select", { id: "head", onchange: draw }, option("", `mean of ${config.heads} heads`), ...numbered(config.heads, "head"));
  const map = html("div", { class: "map" }), legend = html("p", { class: "note" });

  function settle() {
    const { layers } = KINDS[kind.value];
    layer.replaceChildren(...numbered(layers, "layer"));
    layer.value = layers - 1; // the last one
  }

  // The rows of one head, or of their mean.
  function weights() {
    const heads = result.looks[kind.value][layer.value];
    if (head.value !== "") return heads[head.value];
    return heads[0].map((row, query) => row.map((_, key) => heads.reduce((sum, each) => sum + each[query][key] / heads.length, 0)));
  }

  function draw() {
    const { name, rows, columns, row, column } = KINDS[kind.value], shares = weights();
    const cell = (share) => (share === undefined ? html("td", {}) : html("td", { class: share >= WHITE_FROM ? "strong" : null, style: `--share:${share.toFixed(3)}` }, share.toFixed(2)));
    map.replaceChildren(html("table", {},
      html("caption", {}, `The ${name}, layer ${Number(layer.value) + 1}, ${head.selectedOptions[0].textContent}`),
      html("thead", {}, html("tr", {}, html("td"), ...columns().map((token) => html("th", { scope: "col" }, html("span", {}, plain(token)))))),
      html("tbody", {}, ...rows().map((token, at) => html("tr", { class: kind.value !== "encoder" && at === step ? "chosen" : null },
        html("th", { scope: "row" }, plain(token)), ...columns().map((_, key) => cell(shares[at][key])))))));
    legend.textContent = `Each cell is the share that a ${row} (row) gives to a ${column} (column); a row sums to 1.`
      + (kind.value === "decoder" ? " An empty cell had not been written yet." : "");
    const scrolls = map.scrollWidth > map.clientWidth; // only what scrolls is a stop for the keyboard
    for (const [attribute, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", "Where it looked"]]) {
      if (scrolls) map.setAttribute(attribute, value); else map.removeAttribute(attribute);
    }
  }

  // ---- the page ------------------------------------------------------------------------------------------

  const labeled = (text, control) => html("span", {}, html("label", { for: control.id }, text), " ", control);
  settle();
  drawn.append(
    html("h2", {}, "Step by step"),
    html("div", { class: "row" }, label, slider, before, after, playing), steps,
    html("h2", {}, "Where it looked"),
    html("div", { class: "row" }, labeled("Which attention", kind), labeled("Layer", layer), labeled("Head", head)), map, legend);
  document.querySelector("main").append(
    html("form", { onsubmit: translate },
      html("label", { for: "sentence" }, `A sentence in ${about.sourceName}`),
      html("div", {}, input, html("button", { type: "submit" }, "Translate"))),
    ...(about.examples.length ? [html("div", { class: "row", role: "group", "aria-label": "Examples" }, ...about.examples.map((sentence) =>
      html("button", { type: "button", onclick: () => { input.value = sentence; translate(); } }, sentence)))] : []),
    output, note, drawn,
    html("details", {}, html("summary", {}, "About this translator"),
      html("table", { class: "facts" }, html("tbody", {}, ...about.facts.map(([name, value]) =>
        html("tr", {}, html("th", { scope: "row" }, name), html("td", {}, value)))))));
  window.addEventListener("resize", () => { if (result) draw(); });
})();
