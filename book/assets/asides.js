/* A link to a section that is folded, or to anything in a fold, opens it. */

(() => {
  "use strict";
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const section = target.closest(".aside-section");
    const folds = section ? [...section.querySelectorAll(":scope > details.aside")] : [];
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) folds.push(fold);
    if (!folds.some((fold) => !fold.open)) return;
    for (const fold of folds) fold.open = true;
    target.scrollIntoView();
  };
  open();
  addEventListener("hashchange", open);
  // A second click on the same link changes no hash.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href*="#"]');
    if (link && link.hash === location.hash && link.pathname === location.pathname) open();
  });
})();
