// SPDX-License-Identifier: GPL-2.0-only
// Sorts a table by the column whose heading is pressed. Cells have their value in data-value.

const UNITS = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };

// A number may have a unit, an interval or words behind it. Headings of rows are texts.
function valueOf(row, column) {
  const cell = row.cells[column];
  const value = cell ? cell.dataset.value ?? cell.textContent.trim() : "";
  const found = /^([-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s?(\w*)/.exec(value);
  if (!found || cell.matches("tbody th")) return value;
  return Number(found[1].replaceAll(",", "")) * (UNITS[found[2]] ?? 1);
}

function compare(one, other) {
  if (typeof one === typeof other) {
    return typeof one === "number" ? one - other : one.localeCompare(other, "en", { numeric: true });
  }
  return typeof one === "number" ? -1 : 1; // cells without a number come last
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((one, other) =>
        compare(valueOf(one, column), valueOf(other, column)) * (down ? -1 : 1));
      table.tBodies[0].append(...rows);
    });
  });
}
