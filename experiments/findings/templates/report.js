"use strict";
// Sorting, filtering and the choice of a view: everything else is there without a script.
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

  const items = (selector) =>
    selector.split(",").flatMap((one) => all(one + " [data-filter]"));

  const count = (selector) => {
    for (const output of all("output[data-counts]")) {
      if (!selector.split(",").includes(output.dataset.counts)) continue;
      const own = items(output.dataset.counts);
      const shown = own.filter((item) => !item.classList.contains("filtered")).length;
      output.textContent = shown === own.length ? `${own.length} shown` : `${shown} of ${own.length} shown`;
    }
  };

  const filter = (selector) => {
    const words = all("input[data-filters]")
      .filter((input) => input.dataset.filters === selector)
      .flatMap((input) => input.value.toLowerCase().split(/\s+/).filter(Boolean));
    const tags = all("select[data-tags]")
      .filter((select) => select.dataset.tags === selector && select.value)
      .map((select) => select.value);
    for (const item of items(selector)) {
      const text = item.dataset.filter.toLowerCase();
      const own = (item.dataset.tags || "").split(" ");
      const kept = words.every((word) => text.includes(word)) && tags.every((tag) => own.includes(tag));
      item.classList.toggle("filtered", !kept);
    }
    count(selector);
  };

  for (const input of all("input[data-filters]")) {
    input.addEventListener("input", () => filter(input.dataset.filters));
    filter(input.dataset.filters);
  }
  for (const select of all("select[data-tags]")) {
    select.addEventListener("change", () => filter(select.dataset.tags));
  }

  const show = (root, index) => {
    for (const cell of all("[data-v]", root)) {
      const text = cell.dataset.v.split("|")[index];
      cell.textContent = text || "\u2013";
      const value = parseFloat(text);
      if (!cell.classList.contains("p")) {
        cell.dataset.sign = text.slice(0, 1);
      } else if (Number.isNaN(value)) {
        cell.style.removeProperty("--p");
      } else {
        cell.style.setProperty("--p", value);
      }
      cell.classList.toggle("failed", text === "failed");
    }
    for (const row of all("[data-rows]", root)) {
      const texts = all("[data-v]", row).map((cell) => cell.dataset.v.split("|")[index]);
      row.classList.toggle("absent", texts.every((text) => text === ""));
    }
    for (const figure of all("[data-only]", root)) {
      figure.hidden = !figure.dataset.only.split(" ").includes(String(index));
    }
  };

  for (const select of all("select[data-switches]")) {
    const root = document.querySelector(select.dataset.switches);
    const change = () => show(root, select.selectedIndex);
    select.addEventListener("change", change);
    change();
  }
})();
