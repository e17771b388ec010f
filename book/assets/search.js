/* The search page: sections first whose titles hold all the words that were asked for, then pages, chapters before lists.

   Sphinx's own search ranks whole pages, so that a page that names everything once comes first whatever one asks. It
   begins as soon as its index is there, so this script stands before the index and after what it changes (publish.py). */

(() => {
  "use strict";
  Documentation.TRANSLATIONS["Search finished, found ${resultCount} page(s) matching the search query."] =
    "Results: ${resultCount}, the best first.";
  // A screen reader says how many there are, once they are all there.
  const results = document.getElementById("search-results");
  const announce = () => results.querySelectorAll(".search-summary:not([role])").forEach((said) => said.setAttribute("role", "status"));
  new MutationObserver(announce).observe(results, { childList: true });
  announce();

  const theirs = Search._performSearch;
  const stemmer = new Stemmer();
  const stems = (text) => splitQuery(text.toLowerCase()).map((word) => stemmer.stemWord(word));

  // The best stands last, as Sphinx reads from the end; among equals the chapter that is read first.
  const worse = (a, b) => a[4] - b[4] || (a[0] < b[0] ? 1 : a[0] > b[0] ? -1 : 0);

  const sectionsOf = (wanted) => {
    const { alltitles, titles, docnames, filenames } = Search._index, found = [];
    for (const [title, places] of Object.entries(alltitles)) {
      const words = stems(title);
      if (!wanted.every((word) => words.includes(word))) continue;
      for (const [file, id] of places) {
        const whole = titles[file] === title, isChapter = /^\d/.test(docnames[file]);
        const score = 1000 * (wanted.length / words.length) + (isChapter ? 500 : 0) + (whole ? 150 : 0);
        const named = whole ? title : `${titles[file]} > ${title}`;
        found.push([docnames[file], named, id === null ? "" : `#${id}`, null, score, filenames[file]]);
      }
    }
    return found.sort(worse);
  };

  Search._performSearch = (query, ...terms) => {
    const sections = sectionsOf(stems(query));
    const known = new Set(sections.map((result) => result[0] + result[2]));
    const pages = theirs(query, ...terms).filter((result) => !known.has(result[0] + result[2]));
    const isChapter = (result) => Number(/^\d/.test(result[0]));
    return [...pages.sort((a, b) => isChapter(a) - isChapter(b) || worse(a, b)), ...sections];
  };
})();
