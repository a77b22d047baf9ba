"use strict";
// Tables: sorting, and the choice of columns. Everything else of them is there without a script.
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  const key = (cell) => {
    const given = cell.dataset.sort;
    const text = (given !== undefined ? given : cell.textContent).trim();
    const plain = text.replace("\u2212", "-").replaceAll(",", "");
    const number = parseFloat(plain);
    return { text, number: Number.isNaN(number) || !/^[-+.\d]/.test(plain) ? null : number };
  };

  const sort = (table, column, descending) => {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row, place) => ({ row, place, ...key(row.cells[column]) }));
    const numeric = table.tHead.rows[0].cells[column].classList.contains("num");
    const collator = new Intl.Collator("en", { numeric: true });
    const absent = (one) => (numeric ? one.number === null : one.text === "");
    rows.sort((a, b) => {
      // What is undefined comes last, whichever way.
      if (absent(a) || absent(b)) return absent(a) - absent(b) || a.place - b.place;
      const order = numeric ? a.number - b.number : collator.compare(a.text, b.text);
      return (descending ? -order : order) || a.place - b.place;
    });
    body.append(...rows.map((one) => one.row));
  };

  for (const table of all("table.sortable")) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const descending = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        sort(table, column, descending);
      });
    });
  }

  // A wide table says which columns it shows.
  for (const table of all("table.choosable")) {
    const heads = Array.from(table.tHead.rows[0].cells);
    const choice = document.createElement("details");
    choice.className = "columns";
    choice.append(Object.assign(document.createElement("summary"), { textContent: "Columns" }));
    heads.forEach((head, column) => {
      if (!head.classList.contains("num")) return;
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
      box.addEventListener("change", () => {
        for (const row of table.rows) row.cells[column].hidden = !box.checked;
      });
      label.append(box, " ", head.textContent);
      choice.append(label);
    });
    table.parentElement.before(choice);
  }

  // The columns that name a row stay in view, beside each other.
  const pin = (table) => {
    let left = 0;
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      if (!head.classList.contains("name")) return;
      for (const row of table.rows) row.cells[column].style.left = `${left}px`;
      left += head.offsetWidth;
    });
  };
  for (const table of all("table.choosable")) new ResizeObserver(() => pin(table)).observe(table);
})();
