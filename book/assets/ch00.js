/* Chapter 00's two script widgets: the live translator and the memory strip (W00a).

   A classic script, so that the page works straight from the disk. The translator computes in live_model.js; the strip's
   strides are those of torch, and a test compares them. A plain-text twin stands below each widget. */

(() => {
  "use strict";

  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null));
    return node;
  };
  const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const head = (title, id) => html("p", { class: "widget-head" }, title, html("span", { class: "widget-id" }, id));

  let serial = 0;
  const choices = (legend, labels, chosen, onChange) => {
    const name = `ch00-choice-${++serial}`;
    return html("fieldset", {}, html("legend", {}, legend), ...labels.map((label, index) =>
      html("label", { class: "choice" },
        html("input", { type: "radio", name, checked: index === chosen, onchange: () => onChange(index) }),
        html("span", {}, label))));
  };

  // ---- the live translator -------------------------------------------------------------------------------

  const SENTENCES = [
    "I closed the windows.", "I bought new windows for my computer.",
    "She visited the bank near the river.", "We cleaned the old keys of the house.",
  ];

  // A token as a reader knows it: without the marks that say where it touched its neighbor.
  const plain = (token) => (token === "<eos>" ? "end" : token.replaceAll("\uffed", ""));

  const map = ({ source, target, weights }) => html("table", { class: "looked" },
    html("caption", {}, "What it looked at, row by row"),
    html("thead", {}, html("tr", {}, html("td"), ...source.map((token) => html("th", { scope: "col" }, html("span", {}, plain(token)))))),
    html("tbody", {}, ...target.map((token, row) => html("tr", {},
      html("th", { scope: "row" }, plain(token)),
      ...weights[row].map((share) => html("td", { class: share >= 0.6 ? "strong" : null, style: `--share:${share.toFixed(3)}` },
        share.toFixed(2)))))));

  const translator = (root) => {
    const input = html("input", { type: "text", id: "live-text", value: SENTENCES[0], maxlength: 200, autocomplete: "off", spellcheck: "false" });
    const button = html("button", { type: "submit" }, "Translate");
    const output = html("output", { "aria-live": "polite", lang: "it" });
    const note = html("p", { class: "live-note" }, "The first click fetches the model, about a megabyte. After that it runs on your machine, without a network.");
    const looked = html("div", { class: "live-map", tabindex: 0, role: "region", "aria-label": "What the model looked at" });
    looked.hidden = true;

    const say = (text) => { note.textContent = text; };
    const told = (strangers, milliseconds) => {
      const words = [...new Set(strangers)].filter((word) => /\p{L}/u.test(word));
      const speed = `Read and written in ${Math.max(1, Math.round(milliseconds))} ms, here, by this page.`;
      if (!words.length) return speed;
      return `${speed} It has never seen ${words.map((word) => `“${word}”`).join(", ")}, spells what it does not know letter by letter, and makes nonsense of it.`;
    };

    const run = async (event) => {
      event?.preventDefault();
      const text = input.value.trim();
      if (!text) { say("Type a sentence first."); input.focus(); return; }
      button.disabled = true;
      say("Fetching the model …");
      try {
        const model = await window.liveModel.load();
        const began = performance.now(), result = model.translate(text);
        output.textContent = result.translation || "…";
        say(told(model.strangers(text), performance.now() - began));
        looked.replaceChildren(map(result));
        looked.hidden = false;
      } catch (error) {
        say(`The model did not arrive (${error.message}). Is live_model_weights.js beside this page's other scripts?`);
      }
      button.disabled = false;
    };

    root.replaceChildren(
      head("Your translator, as it will be", "live"),
      html("form", { class: "live-form", onsubmit: run },
        html("label", { for: "live-text" }, "An English sentence"),
        html("div", {}, input, button)),
      html("div", { class: "widget-controls" }, ...SENTENCES.map((sentence) =>
        html("button", { type: "button", class: "live-example", onclick: () => { input.value = sentence; run(); } }, sentence))),
      output, note, looked);
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

    const moved = (event, sizes) => {
      const last = sizes.length - 1;
      const by = { ArrowLeft: [last, -1], ArrowRight: [last, 1], ArrowUp: [last - 1, -1], ArrowDown: [last - 1, 1] }[event.key];
      if (!by || by[0] < 0) return;
      event.preventDefault();
      const place = [...chosen];
      place[by[0]] = Math.min(sizes[by[0]] - 1, Math.max(0, place[by[0]] + by[1]));
      choose(place);
    };

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
          onclick: () => choose(place), onkeydown: (event) => moved(event, sizes) }, String(number));
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
