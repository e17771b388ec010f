(() => {
  const root = document.currentScript.parentElement;
  const [caption, frame] = [root.querySelector("output"), root.querySelector(".frame")];
  const frames = root.querySelector("template").content.children;
  const counts = root.dataset.counts.split(",").map(Number);
  const chosen = (control) => Number((control.querySelector("input:checked") ?? control.querySelector("input")).value);
  const show = () => {
    const places = [...root.querySelectorAll("[data-control]")].map(chosen);
    const at = frames[places.reduce((sum, place, index) => sum * counts[index] + place, 0)];
    caption.innerHTML = at.firstElementChild.innerHTML;
    frame.replaceChildren(...[...at.cloneNode(true).childNodes].slice(1));
  };
  root.addEventListener("input", ({ target }) => {
    if (target.type === "range") {
      const said = target.dataset.said.split("|")[target.value];
      target.setAttribute("aria-valuetext", said);
      target.nextElementSibling.textContent = said;
    }
    show();
  });
})();
