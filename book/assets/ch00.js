/* Chapter 00's two script widgets: the live translator and the memory strip (W00a).

   A classic script, so that the page works straight from the disk. The translator computes in live_model.js; the strip's
   strides are those of torch, and a test compares them. A plain-text twin stands below each widget. */

(() => {
  "use strict";

  const { html, head, column, rowHead, choices, onArrow, stepped } = window.widgets;

  // ---- the live translator -------------------------------------------------------------------------------

  const AT_HOME = [
    "I closed the windows.", "I bought new windows for my computer.",
    "She visited the bank near the river.", "We cleaned the old keys of the house.", "TOMORROW ANNA WILL OPEN THE DOOR",
  ];
  const NOT_AT_HOME = ["closed windows the I", "The windows closed the man.", "Is the door open?", "My name is Ada Lovelace."];
  const KNOWN = [
    ["who", "I you he she we they Anna Marco woman teacher engineer friend"],
    ["what", "windows keys door house computer bank river mouse apple letter"],
    ["does what", "closed bought visited cleaned found sold will see will open will break"],
    ["and", "my your the this old new small near behind for yesterday tomorrow"],
  ];
  const LONGEST = 200; // characters
  const WHITE_FROM = 0.92; // a share this dark takes white letters; below, black has more contrast, 4.5 to 1 everywhere
  const BEFORE = "The first click fetches the model, about a megabyte. After that it runs on your machine, without a network.";

  // A token as a reader knows it: without the marks that say where it touched its neighbor.
  const NAMES = { "<eos>": "end", "<unk>": "unknown" };
  const plain = (token) => NAMES[token] ?? (token.replaceAll("\uffed", "") || "joined");
  const percent = (share) => (share < 0.001 ? "below 0.1 %" : `${(100 * share).toFixed(1)} %`);

  // What it looked at, one row for each word written; a row's name is a button that chooses the step.
  const map = ({ source, target, weights }, chosen, choose) => html("table", { class: "looked" },
    html("caption", {}, "What it looked at, row by row"),
    html("thead", {}, html("tr", {}, html("td"), ...source.map((token) => column(html("span", {}, plain(token)))))),
    html("tbody", {}, ...target.map((token, row) => html("tr", { class: row === chosen ? "chosen" : null },
      rowHead(html("button", { type: "button", "aria-pressed": row === chosen ? "true" : "false", onclick: () => choose(row) }, plain(token))),
      ...weights[row].map((share) => html("td", { class: share >= WHITE_FROM ? "strong" : null, style: `--share:${share.toFixed(3)}` },
        share.toFixed(2).replace(/^0/, "")))))));

  // The three words that were likeliest at one step.
  const likely = ({ target, likeliest }, step) => {
    const before = target.slice(0, step).map(plain).join(" ");
    return html("div", { class: "likely" },
      html("p", {}, before ? `What could follow “${before}”?` : "What could come first?"),
      html("ol", {}, ...likeliest[step].map(([token, share]) => html("li", { style: `--share:${share.toFixed(4)}` },
        html("span", {}, plain(token)), " ", html("b", {}, percent(share))))));
  };

  const translator = (root) => {
    const recorded = root.querySelector("script"); // a sentence that was translated before, shown until the first click
    const input = html("input", { type: "text", id: "live-text", value: AT_HOME[0], maxlength: LONGEST, autocomplete: "off", spellcheck: "false", oninput: () => { if (!input.value.trim()) empty(BEFORE); } });
    const button = html("button", { type: "submit" }, "Translate");
    const seal = html("p", { class: "live-seal" }, "✗ outside its world: do not believe this");
    const output = html("output", { "aria-live": "polite", lang: "it" });
    const note = html("p", { class: "live-note", role: "status" }, BEFORE);
    const steps = html("div", { "aria-live": "polite" });
    const looked = html("div", { class: "live-map" });
    const drawn = html("div", {}, steps, looked, html("p", { class: "live-legend" },
      "Each cell is the share that a word written (row) gives to a word read (column): the mean of the eight heads of the decoder's "
      + "attention to the source. This model has one decoder layer; with several, the page would draw the last. Choose a row to see what else was likely there."));

    const say = (text) => { note.textContent = text; };
    const empty = (text) => {
      output.textContent = "";
      drawn.hidden = seal.hidden = true;
      root.classList.remove("outside");
      say(text);
    };

    const told = (asked, read, doubts, milliseconds) => {
      const parts = [];
      if (doubts.length) parts.push(`Outside its world: ${doubts.join("; ")}.`);
      if (read !== asked) parts.push(`Read as “${read}”.`);
      if (asked.length >= LONGEST) parts.push(`Only the first ${LONGEST} characters were read.`);
      parts.push(`Read and written in ${Math.max(1, Math.round(milliseconds))} ms, here, by this page.`);
      return parts.join(" ");
    };

    const show = (result, step) => {
      steps.replaceChildren(likely(result, step));
      looked.replaceChildren(map(result, step, (row) => {
        show(result, row);
        looked.querySelectorAll("tbody button")[row].focus();
      }));
      drawn.hidden = false;
      const scrolls = looked.scrollWidth > looked.clientWidth; // only what scrolls is a stop for the keyboard
      for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", "What the model looked at"]]) {
        if (scrolls) looked.setAttribute(name, value); else looked.removeAttribute(name);
      }
    };

    const run = async (event) => {
      event?.preventDefault();
      const text = input.value.trim();
      if (!text) { empty("Type a sentence first."); input.focus(); return; }
      button.disabled = true;
      say("Fetching the model …");
      try {
        const model = await window.liveModel.load();
        const began = performance.now(), read = model.inKnownCase(text), result = model.translate(read);
        const doubts = model.doubts(read, result);
        output.textContent = result.translation || "…";
        seal.hidden = !doubts.length;
        root.classList.toggle("outside", doubts.length > 0);
        say(told(text, read, doubts, performance.now() - began));
        const shares = result.likeliest.map(([[, share]]) => share);
        show(result, shares.indexOf(Math.min(...shares))); // where it was least sure
      } catch (error) {
        empty(`The model did not arrive (${error.message}). Is live_model_weights.js beside this page's other scripts?`);
      }
      button.disabled = false;
    };

    const examples = (title, sentences) => html("div", { class: "widget-controls", role: "group", "aria-label": title },
      html("span", { class: "live-group" }, title), ...sentences.map((sentence) =>
        html("button", { type: "button", class: "live-example", onclick: () => { input.value = sentence; run(); } }, sentence)));

    empty(BEFORE);
    root.replaceChildren(
      head("Your translator, as it will be", "live"),
      html("form", { class: "live-form", onsubmit: run },
        html("label", { for: "live-text" }, `An English sentence, at most ${LONGEST} characters`),
        html("div", {}, input, button)),
      examples("At home:", AT_HOME), examples("Not at home:", NOT_AT_HOME),
      html("details", { class: "live-known" }, html("summary", {}, "Some words that it knows"),
        html("dl", {}, ...KNOWN.flatMap(([kind, words]) => [html("dt", {}, kind), html("dd", {}, words)]))),
      seal, output, note, drawn);
    if (recorded) {
      const result = JSON.parse(recorded.textContent);
      input.value = result.text;
      output.textContent = result.translation;
      show(result, 0);
      say(`This one was translated beforehand. ${BEFORE}`);
    }
  };

  // ---- W00a: which number of the strip stands where? -----------------------------------------------------

  const contiguous = (sizes) => sizes.map((_, axis) => sizes.slice(axis + 1).reduce((product, size) => product * size, 1));
  const exchanged = (list, order) => order.map((axis) => list[axis]);

  const view = (...sizes) => ({ code: `x.view(${sizes.join(", ")})`, of: () => ({ sizes, strides: contiguous(sizes) }) });
  const turn = (code, order) => ({ code, of: (sizes) => ({ sizes: exchanged(sizes, order), strides: exchanged(contiguous(sizes), order) }) });
  const SELF = { code: "x", of: (sizes) => ({ sizes, strides: contiguous(sizes) }) };

  const STRIPS = [
    { name: "2 × 3", sizes: [2, 3], ways: [SELF, view(3, 2), turn("x.transpose(0, 1)", [1, 0]), view(6)] },
    { name: "2 × 3 × 2", sizes: [2, 3, 2],
      ways: [SELF, view(3, 2, 2), turn("x.transpose(0, 1)", [1, 0, 2]), turn("x.permute(2, 0, 1)", [2, 0, 1]), view(3, 4)] },
  ];

  const memoryStrip = (root) => {
    let strip = STRIPS[0], way = 0, chosen = [0, 0];
    const controls = html("div", { class: "widget-controls" });
    const memory = html("div", { class: "strip", role: "img" });
    const tables = html("div", { class: "widget-body strip-tables" });
    const output = html("output", { "aria-live": "polite" });

    const places = (sizes) => sizes.reduce((found, size) => found.flatMap((place) => Array.from({ length: size }, (_, at) => [...place, at])), [[]]);
    const reads = (place, strides) => place.reduce((sum, at, axis) => sum + at * strides[axis], 0);
    const tuple = (list) => `(${list.join(", ")}${list.length === 1 ? "," : ""})`;

    const choose = (place) => { chosen = place; draw(); tables.querySelector(`[data-place="${place}"]`)?.focus(); };

    const withKeys = (sizes) => onArrow((right, down) => {
      const axis = sizes.length - (right ? 1 : 2);
      if (axis >= 0) choose(chosen.map((at, each) => each === axis ? stepped(at, right || down, sizes[axis]) : at));
    });

    const draw = () => {
      const { sizes, strides } = strip.ways[way].of(strip.sizes), count = reads(sizes.map((size) => size - 1), strides) + 1;
      const own = reads(chosen, strides), rows = contiguous(strip.sizes)[strip.sizes.length - 2];
      const dark = (number) => Math.floor(number / rows) % 2 === 1; // which row of x it came from
      memory.replaceChildren(...Array.from({ length: count }, (_, number) =>
        html("span", { class: `slot${dark(number) ? " odd" : ""}${number === own ? " chosen" : ""}` }, String(number))));
      memory.setAttribute("aria-label", `The strip: ${count} numbers from 0 to ${count - 1}. Number ${own} is marked.`);

      const cell = (place) => {
        const number = reads(place, strides), here = String(place) === String(chosen);
        return html("td", { role: "gridcell", tabindex: here ? 0 : -1, "aria-selected": here ? "true" : "false", "data-place": String(place),
          class: `${dark(number) ? "odd" : ""}${here ? " chosen" : ""}`.trim() || null,
          onclick: () => choose(place), onkeydown: withKeys(sizes) }, String(number));
      };
      const last = sizes.length - 1;
      const table = (front) => {
        const lines = sizes.length === 1 ? [[]] : Array.from({ length: sizes[last - 1] }, (_, row) => [row]);
        return html("table", { class: "matrix", role: "grid", "aria-label": front.length ? `Matrix ${front[0]}` : "The result" },
          front.length ? html("caption", {}, `[${front[0]}]`) : null,
          html("tbody", { role: "rowgroup" }, ...lines.map((row) => html("tr", { role: "row" },
            ...Array.from({ length: sizes[last] }, (_, column) => cell([...front, ...row, column]))))));
      };
      tables.replaceChildren(...(sizes.length === 3 ? Array.from({ length: sizes[0] }, (_, front) => table([front])) : [table([])]));

      const sum = chosen.map((at, axis) => `${at}·${strides[axis]}`).join(" + ");
      output.textContent = `${strip.ways[way].code} has shape ${tuple(sizes)} and strides ${tuple(strides)}. Place [${chosen.join(", ")}] reads number ${sum} = ${own} of the strip.`;
    };

    const start = (index) => {
      strip = STRIPS[index]; way = 0; chosen = strip.sizes.map(() => 0);
      controls.replaceChildren(
        choices("x is", STRIPS.map(({ name }) => name), index, start),
        choices("and we look at", strip.ways.map(({ code }) => code), 0, (picked) => {
          way = picked; chosen = strip.ways[picked].of(strip.sizes).sizes.map(() => 0); draw();
        }));
      draw();
    };

    root.replaceChildren(head("The memory strip", "W00a"), controls,
      html("p", { class: "strip-title" }, "The strip in memory, always the same"), memory,
      html("p", { class: "strip-title" }, "What you see"), tables, output);
    start(0);
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-live-translator]").forEach(translator);
    document.querySelectorAll("[data-memory-strip]").forEach(memoryStrip);
  });
})();
