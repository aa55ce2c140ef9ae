"use strict";
// The page is whole without this; it adds a filter and sorting.
(() => {
  const table = document.querySelector("table.all");
  if (table) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const words = rows.map((row) => row.textContent.toLowerCase());
    const filter = document.getElementById("filter");
    const found = document.getElementById("found");
    const show = () => {
      const asked = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      rows.forEach((row, i) => {
        row.hidden = !asked.every((word) => words[i].includes(word));
        count += row.hidden ? 0 : 1;
      });
      found.textContent = `${count} of ${rows.length}`;
    };
    filter.addEventListener("input", show);
    filter.closest("p").hidden = false;
    show();
    // A link to a run must not lead to a row that is filtered away.
    addEventListener("hashchange", () => {
      const row = document.getElementById(location.hash.slice(1));
      if (row && row.hidden) {
        filter.value = "";
        show();
        row.scrollIntoView({ block: "center" });
      }
    });
    const texts = new Intl.Collator("en", { numeric: true });
    const compare = (a, b) => {
      const [x, y] = [parseFloat(a), parseFloat(b)];
      return isNaN(x) || isNaN(y) || /[^\d.eE+-]/.test(a + b) ? texts.compare(a, b) : x - y;
    };
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const keyed = rows.map((row, at) => [row.cells[i].textContent, at, row]);
        keyed.sort(([a, m], [b, n]) => {
          // What is absent comes last, whichever way.
          if ((a === "--") !== (b === "--")) return a === "--" ? 1 : -1;
          return (down ? -compare(a, b) : compare(a, b)) || m - n;
        });
        body.append(...keyed.map(([, , row]) => row));
      });
    });
  }

  // The width of a table depends on its text, which style alone cannot measure.
  const cut = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      target.previousElementSibling.classList.toggle("cut", target.scrollWidth > target.clientWidth + 1);
    }
  });
  document.querySelectorAll(".cue + .scroll").forEach((one) => cut.observe(one));

  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
  });
})();
