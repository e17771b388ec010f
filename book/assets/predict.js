/* Predict first: the answer of a question (the directive `predict`) is hidden until the reader has made a prediction.

   A classic script, so that the pages work straight from the disk. It turns the list of choices into buttons, or adds a
   field where there are none, and opens the answer, with the output of a code cell right below, once there is a prediction.
   The first prediction counts; loading the page again forgets it. */

(() => {
  "use strict";

  let serial = 0;

  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };

  // The folds that a prediction opens: its own answer, and the hidden output of the code cell that follows.
  const foldsOf = (box) => {
    const cell = box.nextElementSibling?.matches(".cell.tag_hide-output") ? box.nextElementSibling : null;
    return [box.querySelector(".predict-answer"), ...(cell?.querySelectorAll("details") ?? [])];
  };

  const build = (box) => {
    const question = box.querySelector(".predict-question"), list = box.querySelector(".predict-choices");
    const folds = foldsOf(box), right = Number(box.dataset.right);
    const said = make("p", { class: "predict-said", role: "status" });
    question.id ||= `predict-${++serial}`;

    const reveal = (sentence) => {
      box.classList.add("predicted");
      folds.forEach((fold) => { fold.hidden = false; fold.open = true; });
      said.replaceChildren(...sentence);
    };

    const withChoices = () => {
      const row = make("div", { class: "predict-row", role: "group", "aria-labelledby": question.id });
      const buttons = [...list.children].map((item, index) => {
        const button = make("button", { type: "button", "aria-pressed": "false" }, ...(item.querySelector("p") ?? item).childNodes);
        button.addEventListener("click", () => {
          if (box.classList.contains("predicted")) return;
          button.setAttribute("aria-pressed", "true");
          buttons.forEach((other) => other.setAttribute("aria-disabled", "true"));
          buttons[right].classList.add("right");
          if (index !== right) button.classList.add("wrong");
          const correct = [...buttons[right].cloneNode(true).childNodes];
          reveal(index === right ? ["✓ Yes."] : ["✗ Not this one. It is ", ...correct, "."]);
        });
        return button;
      });
      row.append(...buttons);
      list.replaceWith(row);
      row.after(said);
    };

    const withField = () => {
      const field = make("input", { type: "text", autocomplete: "off", spellcheck: "false", "aria-labelledby": question.id });
      const form = make("form", { class: "predict-row" }, field, make("button", { type: "submit" }, "That is my prediction"));
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const written = field.value.trim();
        if (!written) { field.focus(); return; }
        field.readOnly = true;
        reveal([`You wrote: ${written}. Compare:`]);
      });
      question.after(form, said);
    };

    folds.forEach((fold) => { fold.hidden = true; });
    if (list) withChoices(); else withField();
  };

  const showForPrint = () => document.querySelectorAll(".predict").forEach((box) =>
    foldsOf(box).forEach((fold) => { fold.hidden = false; fold.open = true; }));

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll(".predict").forEach(build);
    window.addEventListener("beforeprint", showForPrint);
  });
})();
