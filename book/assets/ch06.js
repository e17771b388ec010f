/* W06a and W06d of chapter 06: where each number lands when words are split into heads, and what trained heads look at.

   A classic script, so that the page works straight from the disk. The page prints both as text
   too; the trained weights come from the page itself. */

(() => {
  "use strict";

  const { html, head, column, rowHead, choices } = window.widgets;

  // ---- W06a: the split machine -----------------------------------------------------------------------------------------

  const SIZES = [
    { words: ["first", "second", "third"], heads: 2, width: 4, numbers: [1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 0, 0] },
    { words: ["first", "second"], heads: 3, width: 6, numbers: [...Array(12).keys()] },
  ];
  const SHADES = ["var(--figure-paper)", "var(--soft)", "var(--edge)"]; // one a word; its number is in every cell's name

  const splitMachine = (root) => {
    let size = SIZES[0], turned = false, chosen = 0;
    const strip = html("div", { class: "ch06-strip", role: "group", "aria-label": "The strip in memory, word after word" });
    const tables = html("div", { class: "ch06-heads" });
    const output = html("output", { "aria-live": "polite" });

    // The place in the strip of what stands in (head, word, feature).
    const placeOf = (h, t, f) => {
      const T = size.words.length, d = size.width / size.heads;
      return turned ? t * size.width + h * d + f : (h * T + t) * d + f;
    };

    const draw = () => {
      const T = size.words.length, d = size.width / size.heads;
      let where = "";
      const cell = (place, label, isWrong) => html("button", {
        type: "button", class: `ch06-cell${place === chosen ? " chosen" : ""}${isWrong ? " scrambled" : ""}`, "data-place": place,
        style: `background:${SHADES[Math.floor(place / size.width)]}`, "aria-pressed": String(place === chosen), "aria-label": label,
        onclick: (event) => {
          const group = event.currentTarget.parentElement.closest("[role=group]"), at = [...group.querySelectorAll("button")].indexOf(event.currentTarget);
          const label = group.getAttribute("aria-label");
          chosen = place;
          draw();
          root.querySelector(`[role=group][aria-label="${label}"]`)?.querySelectorAll("button")[at]?.focus();
        },
      }, String(size.numbers[place]));
      strip.replaceChildren(...size.words.map((word, t) => html("div", { class: "ch06-word" }, html("small", {}, `word ${t}`),
        html("div", {}, ...Array.from({ length: size.width }, (_, f) =>
          cell(t * size.width + f, `word ${t}, feature ${f}: ${size.numbers[t * size.width + f]}`, false))))));
      let scrambled = 0;
      tables.replaceChildren(...Array.from({ length: size.heads }, (_, h) =>
        html("div", { role: "group", "aria-label": `head ${h}` }, html("strong", {}, `head ${h}`),
          ...size.words.map((word, t) => html("div", { class: "ch06-row" }, html("small", {}, `word ${t}`),
            ...Array.from({ length: d }, (_, f) => {
              const place = placeOf(h, t, f), from = Math.floor(place / size.width), feature = place % size.width;
              const isWrong = from !== t || feature !== h * d + f;
              scrambled += isWrong;
              if (place === chosen) where = `lies in head ${h}, word ${t}, place ${f}. ` + (isWrong
                ? `✗ There should be feature ${h * d + f} of word ${t}.` : "✓ That is its place.");
              return cell(place, `head ${h}, word ${t}, place ${f}: feature ${feature} of word ${from}${isWrong ? ", scrambled" : ""}`, isWrong);
            }))))));
      const t = Math.floor(chosen / size.width);
      output.textContent = `Feature ${chosen % size.width} of word ${t} ${where} ` +
        (scrambled ? `${scrambled} of 12 cells are scrambled (✗).` : "No cell is scrambled.");
    };

    root.replaceChildren(head("The split machine", "W06a"),
      html("div", { class: "widget-controls" },
        choices("how it is split", ["view alone", "view, then transpose"], 0, (index) => { turned = index === 1; draw(); }),
        choices("sizes", ["3 words, 2 heads", "2 words, 3 heads"], 0, (index) => { size = SIZES[index]; chosen = 0; draw(); })),
      strip, tables, output);
    draw();
  };

  // ---- W06d: what trained heads look at --------------------------------------------------------------------------------

  const headView = (root, sentences) => {
    let sentence = 0, shownHead = 3, asks = 0;
    const select = html("select", { id: "W06d-asks", onchange: () => { asks = Number(select.value); draw(); } });
    const bars = html("table", { class: "ch06-bars" });
    const output = html("output", { "aria-live": "polite" });
    const named = () => sentences[sentence].tokens.map((token) => token.replace("￭", ""));

    const load = (index) => {
      sentence = index;
      const names = named();
      asks = Math.max(0, names.findIndex((name) => name === "windows" || name === "bank"));
      select.replaceChildren(...names.map((name, place) => html("option", { value: place, selected: place === asks }, name)));
      draw();
    };
    const draw = () => {
      const names = named(), all = sentences[sentence].weights, row = all[shownHead][asks];
      bars.replaceChildren(html("caption", {}, `query “${names[asks]}”: attention weights of each head`),
        html("thead", {}, html("tr", {}, column("word"), ...all.map((_, h) => column(h === shownHead ? `head ${h} ◂` : `head ${h}`)))),
        html("tbody", {}, ...names.map((name, place) => html("tr", {}, rowHead(name),
          ...all.map((weights, h) => html("td", { class: h === shownHead ? "shown" : "", style: `--share:${weights[asks][place]}` }, weights[asks][place].toFixed(3)))))));
      const best = row.indexOf(Math.max(...row));
      output.textContent = `Head ${shownHead}: “${names[asks]}” attends most to “${names[best]}”, ${row[best].toFixed(3)}.`;
    };
    root.replaceChildren(head("Four trained heads", "W06d"),
      html("div", { class: "widget-controls" },
        choices("sentence", sentences.map((each) => each.text), 0, load),
        choices("head", ["0", "1", "2", "3"], shownHead, (index) => { shownHead = index; draw(); }),
        html("label", { for: "W06d-asks" }, "Which query? ", select)),
      html("div", { class: "live-map", tabindex: 0, role: "region", "aria-label": "Shares of every head" }, bars), output);
    load(2);
    root.querySelectorAll("input")[2].checked = true;
  };

  document.addEventListener("DOMContentLoaded", () => {
    const machine = document.getElementById("W06a"), view = document.getElementById("W06d"), data = document.getElementById("W06d-data");
    if (machine) splitMachine(machine);
    if (view && data) headView(view, JSON.parse(data.textContent));
  });
})();
